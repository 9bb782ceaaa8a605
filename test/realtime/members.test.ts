import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TestContext } from "vitest";
import { LeaseholdError, open, startMember } from "leasehold";
import type { Member } from "leasehold";
import { realWorld } from "../../packages/leasehold/src/runtime/world.js";
import { openFleaseClient } from "../../packages/leasehold/src/flease/tcp/client.js";
import { changeMembers, listMembers } from "../../packages/leasehold/src/flease/tcp/change-members.js";
import { silent } from "../../packages/leasehold/src/runtime/logger.js";
import { fleaseSettings } from "../../packages/leasehold/src/flease/protocol/settings.js";
import { defineCluster } from "../../packages/leasehold/src/flease/tcp/cluster.js";
import { FleaseNode } from "../../packages/leasehold/src/flease/tcp/flease-node.js";
import type { Link } from "../../packages/leasehold/src/flease/tcp/transport/link.js";
import { ViewFile } from "../../packages/leasehold/src/flease/tcp/views/view-file.js";
import { writePublishedView } from "../../packages/leasehold/src/flease/views/document.js";
import type { ViewStatus } from "../../packages/leasehold/src/flease/views/member-change.js";
import { freePorts } from "../free-ports.js";
import { largestView, longAddresses, longIds } from "../support/large-views.js";

/**
 * Members are added and removed while leases are held (docs/internals/flease-views.md), with sockets and
 * files. The tests mostly wait for leases to expire, and each has a cluster of its own.
 */

const world = realWorld();
const settings = { ttlMax: "1s", maxClockSkew: "10ms", rpcTimeout: "100ms" } as const;
/** For tests in which a busy machine must not cause the loss of a lease. */
const patient = { ...settings, ttlMax: "4s", rpcTimeout: "400ms" } as const;

/** A folder that is removed at the end of its test. */
function aFolder({ onTestFinished }: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-members-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function cluster(context: TestContext, ids: readonly string[], given: object = settings) {
  const folder = aFolder(context);
  const members: Member[] = [];
  context.onTestFinished(async () => {
    for (const member of members) await member.close();
  });
  const ports = await freePorts(ids.length + 2);
  const addressOf = (index: number) => `127.0.0.1:${ports[index]}`;
  const founding = Object.fromEntries(ids.map((id, index) => [id, addressOf(index)]));
  const start = async (id: string, listen: string, initialClusterState?: "new" | "existing") => {
    const viewsFile = join(folder, `${id}.json`);
    const own = { id, listen, viewsFile, initialClusterState };
    const member = await startMember({ ...own, members: founding, ...given });
    members.push(member);
    return member;
  };
  for (const id of ids) await start(id, founding[id]!, "new");
  for (const member of members) await member.ready({ timeout: "20s" });
  return {
    folder,
    members,
    founding,
    start,
    spare: addressOf(ids.length),
    spare2: addressOf(ids.length + 1),
  };
}

test.concurrent("one member becomes two, and a change that was refused changes nothing", async (context) => {
  const { members, founding, start, spare, spare2 } = await cluster(context, ["a"]);
  const at = [founding["a"]!];
  const absent = changeMembers(at, {}, { add: "x", address: spare2 }, { timeout: "1s" }, world);
  await expect(absent).rejects.toMatchObject({
    code: "UNREACHABLE",
    message: "the members are not changed: x is not connected: start it",
  });
  const b = await start("b", spare);
  expect(await listMembers(at, {}, world)).toEqual({ number: 1, members: founding, cellSize: 1 });
  expect(b.status()).toMatchObject({ view: 1, peers: [{ id: "a" }] });
  const added = await changeMembers(at, {}, { add: "b", address: spare }, {}, world);
  expect(added).toEqual({ number: 3, members: { ...founding, b: spare }, cellSize: 2 });
  await b.ready({ timeout: "10s" });
  const removed = await changeMembers(at, {}, { remove: "a" }, {}, world);
  expect(removed.members).toEqual({ b: spare });
  await members[0]!.close();
  await using leases = await open(`flease://${spare}`);
  await using lease = await leases.acquire("r", { wait: "10s" });
  expect(lease.remaining()).toBeGreaterThan(0);
  // A restarted member continues in the view that it stored.
  await b.close();
  const again = await start("b", spare);
  expect(again.status().view).toBe(5);
}, 180_000);

test.concurrent("of two changes that are begun at two members at the same time, at most one begins, and it ends", async (context) => {
  const { founding } = await cluster(context, ["a", "b", "c", "d"]);
  const addresses = Object.values(founding);
  const node = await openFleaseClient(addresses, {}, world);
  try {
    while (node.reachable() < 4) await new Promise((resolve) => setTimeout(resolve, 5));
    const change = (member: number, remove: string) =>
      node.transport.call(node.link(member)!, "change", { remove }, 5_000);
    const changes = await Promise.allSettled([change(0, "d"), change(1, "c")]);
    const isBegun = (each: unknown) => (each as ViewStatus).waiting === undefined;
    const begun = changes.filter((each) => each.status === "fulfilled" && isBegun(each.value)).length;
    expect(begun).toBeLessThan(2);
    const isThere = async () => begun === 1 || isBegun(await change(0, "d"));
    await context.expect.poll(isThere, { timeout: 20_000 }).toBe(true);
    await context.expect
      .poll(async () => (await listMembers([addresses[0]!], {}, world)).number, { timeout: 20_000 })
      .toBe(3);
  } finally {
    await node.close();
  }
}, 180_000);

test.concurrent("a member comes and another goes, and clients that know one address keep their leases and tokens", async (context) => {
  const { members, founding, start, spare } = await cluster(context, ["a", "b", "c"], patient);
  await using leases = await open(`flease://${founding["b"]}`);
  await using lease = await leases.acquire("kept");
  const { token } = lease;
  await start("d", spare);
  const added = await changeMembers([founding["b"]!], {}, { add: "d", address: spare }, {}, world);
  expect(Object.keys(added.members)).toEqual(["a", "b", "c", "d"]);
  expect([lease.remaining() > 0, lease.token]).toEqual([true, token]);
  const removed = await changeMembers([spare], {}, { remove: "a" }, {}, world);
  expect(Object.keys(removed.members)).toEqual(["b", "c", "d"]);
  await members[0]!.close();
  expect([lease.remaining() > 0, lease.token]).toEqual([true, token]);
  const other = await leases.acquire("fresh", { wait: "5s" });
  expect(other.remaining()).toBeGreaterThan(0);
  await other.release();
  await expect(changeMembers([spare], {}, { remove: "a" }, {}, world)).rejects.toMatchObject({
    code: "INVALID_CONFIG",
  });
  // A client that comes now, with one address, learns all members.
  await using late = await open(`flease://${spare}`);
  expect((await late.holder("kept"))?.token).toBe(token);
  expect(Object.keys((await listMembers([spare], {}, world)).members)).toEqual(["b", "c", "d"]);
}, 60_000);

test.concurrent("clients keep their leases during a change of members whose view exceeds the 4 KiB of a client's call", async (context) => {
  const ids = longIds("m", 14);
  const { founding, start, spare } = await cluster(context, ids, { ttlMax: "4s", maxClockSkew: "20ms" });
  const addresses = Object.values(founding);
  await using leases = await open(`flease://${addresses[3]}`);
  await using lease = await leases.acquire("kept", { ttl: "4s" });
  const { token } = lease;
  const [added] = longIds("n", 1);
  await start(added!, spare);
  const change = { add: added!, address: spare, remove: ids[0]! };
  const status = await changeMembers([addresses[3]!], {}, change, {}, world);
  expect(JSON.stringify(status).length).toBeGreaterThan(1_024);
  // The joint view lasted longer than a lease, so a lease that was not renewed in it would be lost.
  expect([lease.signal.aborted, lease.remaining() > 0, lease.token]).toEqual([false, true, token]);
}, 120_000);

test.concurrent("the largest view reaches a client that opens and a client that is open, over real sockets", async (context) => {
  const folder = aFolder(context);
  const { view, addresses, barrier } = largestView();
  const note = { barrier, settled: new Map() };
  const [a, b] = [view.members[0]!, view.members[1]!];
  const [ours, theirs] = (await freePorts(2)).map((port) => `127.0.0.1:${port}`) as [string, string];
  const at = { ...addresses, [a]: ours, [b]: theirs };
  const before = { ...view, number: view.number - 3, stamp: view.number - 3, before: undefined };
  const founding = longIds("f");
  const nodes = [a, b].map((nodeId) => {
    const chosen = {
      members: founding,
      cellSize: 31,
      ttlMaxMs: 1_000,
      maxClockSkewMs: 10,
      rpcTimeoutMs: 100,
    };
    const places = { ...longAddresses(founding), [founding[0]!]: ours };
    const known = defineCluster("test", fleaseSettings(chosen), places);
    const file = new ViewFile(join(folder, nodeId));
    file.write({ view: before, barrier, addresses: at });
    const viewKeeping = { file, state: undefined };
    return new FleaseNode({ world, cluster: known, role: "member", nodeId, logger: silent, viewKeeping });
  }) as [FleaseNode, FleaseNode];
  const [node, other] = nodes;
  try {
    await node.listen(ours);
    await other.listen(theirs);
    for (const each of nodes) each.dialMembers();
    const client = await openFleaseClient([ours], { timeout: "1s" }, world);
    nodes.push(client);
    expect(client.peer.views.view).toEqual(before);
    // Pretend that the others have begun a change.
    other.calls.answer(
      { role: "member", peerId: view.members[2]! } as Link,
      "view",
      writePublishedView({ view, ...note, addresses: at }),
    );
    const isThere = (one: FleaseNode) => one.peer.views.view.stamp === view.stamp;
    await context.expect.poll(() => nodes.every(isThere), { timeout: 60_000 }).toBe(true);
    expect(client.peer.views.view).toEqual(view);
  } finally {
    for (const each of nodes) await each.close();
  }
}, 120_000);

/** A client that holds a lease and renews it throughout. */
async function aHolder(address: string) {
  const leases = await open(`flease://${address}`);
  const lease = await leases.acquire("kept", { wait: "30s" });
  const { token } = lease;
  const isKept = () => lease.remaining() > 0 && !lease.signal.aborted && lease.token === token;
  return { leases, lease, isKept };
}

async function grownToThree(context: TestContext) {
  const { founding, start, spare, spare2, ...more } = await cluster(context, ["a"], patient);
  const at = [founding["a"]!];
  for (const [id, address] of [
    ["b", spare],
    ["c", spare2],
  ] as const) {
    await start(id, address);
    await changeMembers(at, {}, { add: id, address }, { timeout: "2m" }, world);
  }
  return { founding, start, spare, spare2, ...more };
}

test.concurrent("one member grows to three at once when they start, and a lease is renewed throughout", async (context) => {
  const { founding, start, spare, spare2 } = await cluster(context, ["a"], patient);
  const at = [founding["a"]!];
  const { leases, isKept } = await aHolder(at[0]!);
  const seen = new Set<string>();
  for (const [id, address] of [
    ["b", spare],
    ["c", spare2],
  ] as const) {
    await start(id, address);
    const onProgress = ({ waiting }: ViewStatus) => void seen.add(waiting?.text.replace(/\d+/, "N") ?? "");
    await changeMembers(at, {}, { add: id, address }, { timeout: "2m", onProgress }, world);
    expect(isKept()).toBe(true);
  }
  expect([...seen]).toContain("b waits out its recovery, N s");
  await leases.close();
}, 180_000);

test.concurrent("with one of three dead another is replaced, and then a fourth is added, and a lease is renewed throughout", async (context) => {
  const { members, founding, start, spare, spare2 } = await cluster(context, ["a", "b", "c"], patient);
  const { leases, isKept } = await aHolder(founding["a"]!);
  await members[2]!.close();
  await start("d", spare);
  const at = [founding["a"]!, spare];
  await changeMembers(at, {}, { add: "d", address: spare, remove: "b" }, { timeout: "2m" }, world);
  expect(isKept()).toBe(true);
  await members[1]!.close();
  // Of a, c and d two are alive; of four members three must be.
  await start("e", spare2);
  const grown = await changeMembers(at, {}, { add: "e", address: spare2 }, { timeout: "2m" }, world);
  expect(Object.keys(grown.members)).toEqual(["a", "c", "d", "e"]);
  expect(isKept()).toBe(true);
  await leases.close();
}, 180_000);

test.concurrent("a member at the address of a running one is waited for, and the connection to the running one is kept", async (context) => {
  const { members, founding } = await cluster(context, ["a", "b"], patient);
  const { leases, isKept } = await aHolder(founding["a"]!);
  const change = { add: "c", address: founding["b"]!, remove: "b" };
  const isConnected = () => members[0]!.status().peers.every(({ connected }) => connected);
  expect(isConnected()).toBe(true);
  let dropped = 0;
  const looking = setInterval(() => void (isConnected() || (dropped += 1)), 5);
  try {
    await expect(changeMembers([founding["a"]!], {}, change, { timeout: "1s" }, world)).rejects.toMatchObject(
      {
        code: "UNREACHABLE",
        message: `the members are not changed: b still runs at ${founding["b"]}: stop it, and start c there`,
      },
    );
  } finally {
    clearInterval(looking);
  }
  expect([dropped, isKept()]).toEqual([0, true]);
  await leases.close();
}, 180_000);

test.concurrent("a change whose majority needs a dead member is not begun, and is completed when the member is back", async (context) => {
  const { members, founding, start } = await cluster(context, ["a", "b", "c"], patient);
  await members[2]!.close();
  const { leases, isKept } = await aHolder(founding["a"]!);
  const at = [founding["a"]!];
  const remove = (timeout: string) => changeMembers(at, {}, { remove: "b" }, { timeout }, world);
  await expect(remove("1s")).rejects.toMatchObject({
    code: "NO_QUORUM",
    message: expect.stringContaining("1 of the 2 members after the change can give their votes"),
  });
  expect([(await listMembers(at, {}, world)).number, isKept()]).toEqual([1, true]);
  const removed = remove("2m");
  await start("c", founding["c"]!);
  expect(Object.keys((await removed).members)).toEqual(["a", "c"]);
  expect(isKept()).toBe(true);
  await leases.close();
}, 180_000);

test.concurrent("a change that is cancelled by its signal at any moment can be requested again, and is done once", async (context) => {
  const { founding, start, spare } = await cluster(context, ["a", "b"], patient);
  const at = Object.values(founding);
  const { leases, isKept } = await aHolder(at[0]!);
  const change = { add: "c", address: spare };
  const givenUpWhen = async (isIt: (status: ViewStatus) => boolean) => {
    const stop = new AbortController();
    const onProgress = (status: ViewStatus) => void (isIt(status) && stop.abort(new Error("given up")));
    const call = changeMembers(at, {}, change, { signal: stop.signal, onProgress }, world);
    await expect(call).rejects.toThrow("given up");
  };
  const gone = AbortSignal.abort(new Error("before"));
  await expect(changeMembers(at, {}, change, { signal: gone }, world)).rejects.toThrow("before");
  await givenUpWhen(({ waiting }) => waiting?.code === "UNREACHABLE");
  await start("c", spare);
  await givenUpWhen(({ waiting }) => waiting?.code === "TIMEOUT");
  await givenUpWhen(({ joint }) => joint !== undefined);
  // The change that had begun continued.
  const done = await changeMembers(at, {}, change, {}, world);
  expect([done.number, Object.keys(done.members)]).toEqual([3, ["a", "b", "c"]]);
  expect((await changeMembers(at, {}, change, {}, world)).number).toBe(3);
  expect(isKept()).toBe(true);
  await leases.close();
}, 180_000);

test.concurrent("two concurrent changes of the members are both done, one after the other", async (context) => {
  const { founding, start, spare, spare2 } = await cluster(context, ["a", "b", "c"]);
  const at = Object.values(founding);
  await Promise.all([start("d", spare), start("e", spare2)]);
  const add = (id: string, address: string) =>
    changeMembers(at, {}, { add: id, address }, { timeout: "2m" }, world);
  await Promise.all([add("d", spare), add("e", spare2)]);
  const { number, members: now } = await listMembers(at, {}, world);
  expect([number, Object.keys(now)]).toEqual([5, ["a", "b", "c", "d", "e"]]);
}, 180_000);

test.concurrent("the member that has begun a change dies, and the others complete it", async (context) => {
  const { members, founding, start, spare } = await cluster(context, ["a", "b", "c"], patient);
  const at = Object.values(founding);
  const { leases, isKept } = await aHolder(founding["b"]!);
  await start("d", spare);
  let closing: Promise<void> | undefined;
  const onProgress = ({ joint }: ViewStatus) => {
    if (joint !== undefined) closing ??= members[0]!.close();
  };
  const change = { add: "d", address: spare };
  const done = await changeMembers(at, {}, change, { timeout: "2m", onProgress }, world);
  await closing;
  expect([done.number, Object.keys(done.members), isKept()]).toEqual([3, ["a", "b", "c", "d"], true]);
  await leases.close();
}, 180_000);

test.concurrent("a founding member that has lost its file does not vote by its initial list", async (context) => {
  const { folder, members, founding, start, spare } = await grownToThree(context);
  await members[0]!.close();
  const { leases: others, lease, isKept } = await aHolder(spare);
  rmSync(join(folder, "a.json"));
  // It cannot know whether the cluster is new.
  const unsure = start("a", founding["a"]!);
  await expect(unsure).rejects.toMatchObject({
    code: "INVALID_CONFIG",
    message: expect.stringMatching(/new/),
  });
  for (const state of ["new", "existing"] as const) {
    const again = await start("a", founding["a"]!, state);
    await context.expect.poll(() => again.status().view, { timeout: 60_000 }).toBe(5);
    expect(again.status()).toMatchObject({ state: "learner", notice: expect.stringContaining("no vote") });
    await expect(again.leases.acquire("kept", { wait: "2s" })).rejects.toMatchObject({ code: "TIMEOUT" });
    await again.close();
    if (state === "new") rmSync(join(folder, "a.json"));
  }
  expect([isKept(), lease.remaining() > 0]).toEqual([true, true]);
  // Its replacement gets a new file.
  const anew = await start("a", founding["a"]!, "existing");
  const at = [founding["a"]!, spare];
  await changeMembers(at, {}, { remove: "a" }, { timeout: "2m" }, world);
  await changeMembers(at, {}, { add: "a", address: founding["a"]! }, { timeout: "2m" }, world);
  await anew.ready({ timeout: "1m" });
  expect([anew.status().state, isKept()]).toEqual(["ready", true]);
  await others.close();
}, 180_000);

test.concurrent("a member without a file has no vote as soon as it learns that the members have changed", async (context) => {
  const { members, founding, spare } = await grownToThree(context);
  await members[0]!.close();
  const a = await startMember({ id: "a", members: founding, ...patient });
  members.push(a);
  await context.expect.poll(() => a.status().state, { timeout: 60_000 }).toBe("learner");
  expect(a.status().notice).toContain("no vote");
  const { leases, isKept } = await aHolder(spare);
  await expect(a.leases.acquire("kept", { wait: "2s" })).rejects.toBeInstanceOf(LeaseholdError);
  expect(isKept()).toBe(true);
  await leases.close();
}, 180_000);

test.concurrent("all members lose power before the first change, and recover as they were", async (context) => {
  const { members, founding, start } = await cluster(context, ["a", "b", "c"]);
  for (const member of members.splice(0)) await member.close();
  for (const [id, address] of Object.entries(founding)) await start(id, address);
  for (const member of members) await member.ready({ timeout: "1m" });
  await expect(start("d", "127.0.0.1:0", "new")).rejects.toMatchObject({ code: "INVALID_CONFIG" });
}, 180_000);
