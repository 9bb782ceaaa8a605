import { labelBytesMax } from "../../../runtime/participant.js";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { fleaseSettings } from "../../protocol/settings.js";
import type { FleaseSettingsInput } from "../../protocol/settings.js";
import { LeaseManager } from "../../../lease/manager/lease-manager.js";
import type { World } from "../../../common/ports.js";
import { dataBytesMax } from "../../../lease/tenure-data.js";
import type { Lease } from "../../../lease/types.js";
import { listedMax } from "../../admin/listing.js";
import { resourceNameBytesMax } from "../../../lease/resource-name.js";
import { ByteWriter } from "../wire/bytes.js";
import { defineCluster } from "../cluster.js";
import { FleaseNode } from "../flease-node.js";
import { NODE_ID_BYTES_MAX } from "../wire/identity.js";
import type { Role } from "../../../runtime/security/roles.js";
import { silent } from "../../../runtime/logger.js";
import { encodeAnswer } from "../wire/admin-frames.js";
import { realWorld } from "../../../runtime/world.js";

/**
 * Admitted peers request and consume as much as they may, over real sockets, without harm to anyone else.
 * `npm run intrude` runs storms for minutes and checks memory; LEASEHOLD_TRIES overrides the number.
 */
const tries = Number(process.env["LEASEHOLD_TRIES"] ?? 3_000);
const isLong = process.env["LEASEHOLD_TRIES"] !== undefined;
const heldCount = isLong ? 20_000 : 1_200;
const rounds = Math.ceil(tries / 3_000);
const listsAtOnce = 32;
const growthBytesMax = 24 * 2 ** 20;

/** Both clocks can be advanced, so that nobody has to wait for a recovery. */
function worldAhead(): World & { aheadMs: number } {
  const { clock, timers, random } = realWorld();
  const world = {
    timers,
    random,
    aheadMs: 0,
    clock: {
      monotonicMs: () => clock.monotonicMs() + world.aheadMs,
      wallMs: () => clock.wallMs() + world.aheadMs,
    },
  };
  return world;
}

/** One ready member, and a way to connect to it. */
async function setUp(more: Partial<FleaseSettingsInput> = {}) {
  const world = worldAhead();
  const settings = fleaseSettings({
    members: ["a"],
    ttlMaxMs: 60_000,
    maxClockSkewMs: 500,
    rpcTimeoutMs: 2_000,
    ...more,
  });
  const cluster = defineCluster("test", settings, { a: "127.0.0.1:1" });
  const nodeOf = (role: Role, nodeId: string) => {
    const node = new FleaseNode({ world, cluster, role, nodeId, logger: silent });
    const leases = new LeaseManager(node.provider, world);
    onTestFinished(() => leases.close());
    return { node, leases };
  };
  const member = nodeOf("member", "a");
  const address = await member.node.listen("127.0.0.1:0");
  world.aheadMs = settings.waitWallMs + 60_000;
  await expect.poll(() => member.node.peer.acceptor!.ready, { timeout: 10_000 }).toBe(true);
  const connect = async (role: Role, nodeId: string) => {
    const participant = nodeOf(role, nodeId);
    participant.node.dialMembers(new Map([["a", address]]));
    await expect.poll(() => participant.node.reachable(), { timeout: 10_000 }).toBe(1);
    return participant;
  };
  return { member, connect };
}

/** A few at a time: thousands at once take a busy machine too long. */
async function take(leases: LeaseManager, wanted: readonly string[]): Promise<Lease[]> {
  const held: Lease[] = [];
  for (let from = 0; from < wanted.length; from += 100) {
    const some = wanted.slice(from, from + 100);
    const taken = some.map((name) => leases.acquire(name, { ttl: "50s", wait: "1m" }));
    for (const lease of await Promise.all(taken)) held.push(lease);
  }
  return held;
}

const names = (kind: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${kind}/${index}`);

/** A name that JSON makes as long as possible. */
const quoted = (bytes: number) => '"'.repeat(bytes);

function bytesInUse(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test(
  "storms of lists, of lists that nobody goes on with, and of watches cost nobody a lease, and no memory",
  { timeout: 0 },
  async () => {
    const { connect } = await setUp();
    const { leases } = await connect("client", "good");
    const held = await take(leases, names("held", heldCount));
    const { node, leases: asking } = await connect("observer", "asking");
    const link = node.link(0)!;
    const storm = async (): Promise<void> => {
      const stop = new AbortController();
      const watched = names("held", 16).map(async (prefix) => {
        const watch = asking.watch(prefix, { signal: stop.signal });
        const first = await watch.next();
        stop.signal.throwIfAborted();
        return first.done;
      });
      const listed = Array.from({ length: listsAtOnce - 16 }, () => asking.list("", { timeout: "1m" }));
      // Lists that are begun and never continued: each replaces an older one.
      let begun = 0;
      for (let session = 1_000_000; session < 1_000_000 + 3 * listsAtOnce; session += 1) {
        const call = node.transport.call(link, "list", { session, prefix: "", page: 0 }, 60_000);
        begun += await call.then(
          () => 1,
          () => 0,
        );
      }
      expect((await Promise.all(listed)).map((list) => list.length)).toEqual(listed.map(() => heldCount));
      expect(await Promise.all(watched)).toEqual(watched.map(() => false));
      expect(begun).toBeGreaterThan(0);
      stop.abort();
    };
    await storm();
    const before = bytesInUse();
    for (let round = 1; round < rounds; round += 1) {
      await Promise.all([storm(), Promise.all(held.slice(0, 100).map((lease) => lease.renew()))]);
      for (const lease of held) lease.assertHeld();
    }
    for (const lease of held) lease.assertHeld();
    const growth = bytesInUse() - before;
    if (isLong) process.stdout.write(`${rounds} storms over ${heldCount} leases; growth ${growth} bytes\n`);
    expect(growth).toBeLessThan(growthBytesMax);
  },
);

test("one client under any number of names cannot take others' leases; it learns their holders, and keeps its own", async () => {
  const { member, connect } = await setUp({ resourcesMax: 400 });
  const greedy = await connect("client", "greedy");
  const outcomes = await Promise.allSettled(
    // With a wait: a briefly overloaded member refuses new requests, and these are retried.
    names("greedy", 400).map((name) => greedy.leases.acquire(name, { ttl: "30s", wait: "3s" })),
  );
  const held = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const refused = outcomes.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  expect(held.length).toBeGreaterThan(280);
  for (const error of refused) {
    expect(error).toMatchObject({ code: "RESOURCES_FULL", message: expect.stringContaining('"greedy"') });
  }
  for (const name of names("alias", 5)) {
    const { leases } = await connect("client", name.replace("/", "-"));
    await Promise.allSettled(names(name, 20).map((each) => leases.tryAcquire(each, { ttl: "30s" })));
  }
  // Another account: the member's own.
  await expect(member.leases.acquire("modest", { wait: "5s" })).resolves.toMatchObject({
    resource: "modest",
  });
  await Promise.all(held.map((lease) => lease.renew()));
  for (const lease of held) lease.assertHeld(10_000);
  await Promise.all(held.slice(0, 100).map((lease) => lease.release()));
});

test("the longest names that a client may use do not prevent a page of a list from being sent", () => {
  const largest = { number: Number.MAX_SAFE_INTEGER, sequence: 0xffff_ffff, until: 1_795_000_000_000.0625 };
  const owner = `${quoted(NODE_ID_BYTES_MAX)}.${"0".repeat(32)}`;
  const lease = { ...largest, resource: quoted(resourceNameBytesMax), owner, token: largest.number };
  const words = { label: quoted(labelBytesMax), data: quoted(dataBytesMax) };
  const held = Array.from({ length: listedMax }, () => ({ ...lease, ...words }));
  const value = { held, free: [], more: true, anew: false };
  expect(() => encodeAnswer(new ByteWriter(8), { id: 1, value })).not.toThrow();
});

test("an unresponsive holder takes no room from calls to others", async () => {
  const { member, connect } = await setUp();
  const { node, leases } = await connect("client", "mute");
  await leases.acquire("wanted");
  node.link(0)!.frame = () => {};
  const { owner } = node.peer.proposer;
  const asked: Promise<unknown>[] = [];
  for (const name of names("asks", 6)) {
    const { node: asking } = await connect("client", name.replace("/", "-"));
    const ask = () =>
      asking.transport.call(asking.link(0)!, "requestRelease", { resource: "wanted", owner }, 10_000);
    for (let each = 0; each < 64; each += 1) asked.push(ask().catch(() => false));
  }
  await connect("client", "other");
  const other = [...member.node.transport.links].find((link) => link.peerId === "other")!;
  await expect(member.node.transport.call(other, "status", {}, 5_000)).resolves.toBeDefined();
  expect(new Set(await Promise.all(asked))).toEqual(new Set([false]));
});
