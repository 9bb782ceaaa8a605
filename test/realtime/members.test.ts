import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { open, startMember } from "leasehold";
import type { Member } from "leasehold";
import { realWorld } from "../../src/runtime/world.js";
import { openFleaseClient } from "../../src/flease/tcp/client.js";
import { changeMembers, listMembers } from "../../src/flease/tcp/change-members.js";
import { silent } from "../../src/runtime/logger.js";
import { fleaseSettings } from "../../src/flease/protocol/settings.js";
import { defineCluster } from "../../src/flease/tcp/cluster.js";
import { FleaseNode } from "../../src/flease/tcp/flease-node.js";
import type { Link } from "../../src/flease/tcp/transport/link.js";
import { ViewFile, writeToldView } from "../../src/flease/tcp/view-notes.js";
import { freePorts } from "../free-ports.js";
import { largestView, longAddresses, longIds } from "../support/large-views.js";

/** Members that come and go while leases are held (docs/flease.md, 3.14), with sockets and files. */

let folder = "";
let members: Member[] = [];
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "leasehold-members-"))));
afterEach(async () => {
  for (const member of members) await member.close();
  members = [];
  rmSync(folder, { recursive: true });
});

const world = realWorld();
const settings = { ttlMax: "1s", maxClockSkew: "10ms", rpcTimeout: "100ms" } as const;
const nothing = () => undefined;

async function cluster(ids: readonly string[], times: object = settings) {
  const ports = await freePorts(ids.length + 2);
  const addressOf = (index: number) => `127.0.0.1:${ports[index]}`;
  const founding = Object.fromEntries(ids.map((id, index) => [id, addressOf(index)]));
  const start = async (id: string, listen: string, viewsFile = join(folder, `${id}.json`)) => {
    const member = await startMember({ id, members: founding, listen, viewsFile, ...times });
    members.push(member);
    return member;
  };
  for (const id of ids) await start(id, founding[id]!);
  for (const member of members) await member.ready({ timeout: "20s" });
  return { founding, start, spare: addressOf(ids.length), spare2: addressOf(ids.length + 1) };
}

test("one member becomes two, and a change that was refused changes nothing", async () => {
  const { founding, start, spare, spare2 } = await cluster(["a"]);
  const at = [founding["a"]!];
  const absent = changeMembers(at, {}, { add: "x", address: spare2 }, nothing, world);
  await expect(absent).rejects.toThrow(`x cannot be reached at ${spare2}: start it first`);
  const b = await start("b", spare);
  expect(await listMembers(at, {}, world)).toEqual({ number: 1, members: founding, cellSize: 1 });
  expect(b.status()).toMatchObject({ view: 1, peers: [{ id: "a" }] });
  const added = await changeMembers(at, {}, { add: "b", address: spare }, nothing, world);
  expect(added).toEqual({ number: 3, members: { ...founding, b: spare }, cellSize: 2 });
  await b.ready({ timeout: "10s" });
  const removed = await changeMembers(at, {}, { remove: "a" }, nothing, world);
  expect(removed.members).toEqual({ b: spare });
  await members[0]!.close();
  await using leases = await open(`flease://${spare}`);
  await using lease = await leases.acquire("r", { wait: "10s" });
  expect(lease.remaining()).toBeGreaterThan(0);
  // A restart goes on in the view that was kept.
  await b.close();
  const again = await start("b", spare);
  expect(again.status().view).toBe(5);
}, 60_000);

test("of two changes that are begun at two members at one moment no more than one begins, and it ends", async () => {
  const { founding } = await cluster(["a", "b", "c", "d"]);
  const addresses = Object.values(founding);
  const node = await openFleaseClient(addresses, {}, world);
  try {
    while (node.reachable() < 4) await new Promise((resolve) => setTimeout(resolve, 5));
    const change = (member: number, remove: string) =>
      node.transport.call(node.link(member)!, "change", { remove }, 5_000);
    const changes = await Promise.allSettled([change(0, "d"), change(1, "c")]);
    const begun = changes.filter(({ status }) => status === "fulfilled").length;
    expect(begun).toBeLessThan(2);
    const again = begun === 1 ? [] : [change(0, "d")];
    await Promise.all(again);
    await expect
      .poll(async () => (await listMembers([addresses[0]!], {}, world)).number, { timeout: 20_000 })
      .toBe(3);
  } finally {
    await node.close();
  }
}, 60_000);

test("a member comes and another goes, and leases are kept with their tokens by those who know one address", async () => {
  const { founding, start, spare } = await cluster(["a", "b", "c"]);
  await using leases = await open(`flease://${founding["b"]}`);
  await using lease = await leases.acquire("kept", { ttl: "1s" });
  const { token } = lease;
  await start("d", spare);
  const added = await changeMembers([founding["b"]!], {}, { add: "d", address: spare }, nothing, world);
  expect(Object.keys(added.members)).toEqual(["a", "b", "c", "d"]);
  expect([lease.remaining() > 0, lease.token]).toEqual([true, token]);
  const removed = await changeMembers([spare], {}, { remove: "a" }, nothing, world);
  expect(Object.keys(removed.members)).toEqual(["b", "c", "d"]);
  await members[0]!.close();
  expect([lease.remaining() > 0, lease.token]).toEqual([true, token]);
  const other = await leases.acquire("fresh", { wait: "5s" });
  expect(other.remaining()).toBeGreaterThan(0);
  await other.release();
  await expect(
    changeMembers([spare], {}, { add: "x", address: "127.0.0.1:1" }, nothing, world),
  ).rejects.toThrow("x cannot be reached at 127.0.0.1:1: start it first");
  await expect(changeMembers([spare], {}, { remove: "a" }, nothing, world)).rejects.toMatchObject({
    code: "INVALID_CONFIG",
  });
  // One who comes now, by one address, learns all of it.
  await using late = await open(`flease://${spare}`);
  expect((await late.holder("kept"))?.token).toBe(token);
  expect(Object.keys((await listMembers([spare], {}, world)).members)).toEqual(["b", "c", "d"]);
}, 60_000);

test("clients keep their leases over a change of members whose view has more than the 4 KiB of a client's call", async () => {
  const ids = longIds("m", 14);
  const { founding, start, spare } = await cluster(ids, { ttlMax: "4s", maxClockSkew: "20ms" });
  const addresses = Object.values(founding);
  await using leases = await open(`flease://${addresses[3]}`);
  await using lease = await leases.acquire("kept", { ttl: "4s" });
  const { token } = lease;
  const [added] = longIds("n", 1);
  await start(added!, spare);
  const change = { add: added!, address: spare, remove: ids[0]! };
  const status = await changeMembers([addresses[3]!], {}, change, nothing, world);
  expect(JSON.stringify(status).length).toBeGreaterThan(1_024);
  // The joint view was longer than a lease: one that was not renewed in it is lost.
  expect([lease.signal.aborted, lease.remaining() > 0, lease.token]).toEqual([false, true, token]);
}, 120_000);

test("the largest view gets to a client that opens, and to one that is open, over real sockets", async () => {
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
    const viewFile = new ViewFile(join(folder, nodeId));
    viewFile.write({ view: before, ...note, addresses: at });
    return new FleaseNode({ world, cluster: known, role: "member", nodeId, logger: silent, viewFile });
  }) as [FleaseNode, FleaseNode];
  const [node, other] = nodes;
  try {
    await node.listen(ours);
    await other.listen(theirs);
    for (const each of nodes) each.dialMembers();
    const client = await openFleaseClient([ours], { timeout: "1s" }, world);
    nodes.push(client);
    expect(client.peer.views.view).toEqual(before);
    // As if the others had begun a change.
    other.answer(
      { role: "member", peerId: view.members[2]! } as Link,
      "view",
      writeToldView({ view, ...note, addresses: at }),
    );
    const isThere = (one: FleaseNode) => one.peer.views.view.stamp === view.stamp;
    await expect.poll(() => nodes.every(isThere), { timeout: 60_000 }).toBe(true);
    expect(client.peer.views.view).toEqual(view);
  } finally {
    for (const each of nodes) await each.close();
  }
}, 120_000);
