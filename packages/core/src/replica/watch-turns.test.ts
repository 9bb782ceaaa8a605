import { describe, expect, test } from "vitest";
import { VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { bytes, grant, put } from "@leasehold/sim/inner/core/world/requests.js";
import type { CorePlan } from "@leasehold/sim/inner/core/world/plan.js";
import type { SimServer } from "@leasehold/sim/inner/core/world/server.js";
import type { WatchResponse } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { ReplicaLimits } from "./options.js";

const all = { key: bytes("\0"), rangeEnd: bytes("\0") };

const revisionsOf = (responses: readonly WatchResponse[]) =>
  responses.flatMap(({ events }) => events.map(({ kv }) => Number(kv!.modRevision)));

const fromTo = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

/** A cluster in which long work takes many turns. */
function inTurns(plan: Partial<CorePlan>, limits: Partial<ReplicaLimits> = {}): VirtualCluster {
  const network = { latencyMs: 0.2, writeMs: 0.1 };
  const turns = { turnMs: 0.5, turnsAtOnce: 1, limits: { unitsPerTurn: 64, ...limits } };
  return new VirtualCluster({ ...network, ...turns, ...plan });
}

/**
 * Grants `count` leases with a key each, which all end together.
 * @returns the last revision before they end
 */
function leasesWithKeys(cluster: VirtualCluster, leader: SimServer, count: number): number {
  for (let id = 1; id <= count; id += 1) cluster.send(leader, grant(5, BigInt(id)));
  cluster.run(500);
  for (let id = 1; id <= count; id += 1) cluster.send(leader, put(`k${id}`, "v", BigInt(id)));
  cluster.run(500);
  expect(leader.replica!.status()).toMatchObject({ leases: count, revision: count + 1 });
  return count + 1;
}

/** Runs until the condition holds. */
function runUntil(cluster: VirtualCluster, stepMs: number, holds: () => boolean): void {
  const endMs = cluster.world.nowMs + 8_000;
  while (!holds() && cluster.world.nowMs < endMs) cluster.run(stepMs);
  expect(holds()).toBe(true);
}

/**
 * Cuts a server off when it has an entry after this index and the leader knows, but before the server hears
 * that the entry is committed.
 */
function cutOffBeforeCommit({ world }: VirtualCluster, server: SimServer, after: number): void {
  const { send, side } = world;
  world.send = (sender, message, snapshot) => {
    const told = message.kind === "commit" ? message.index : "commit" in message ? message.commit : 0;
    const isTooMuch = message.to === server.id && told > after;
    // The leader names only what it knows the server to have.
    if (isTooMuch && message.kind === "heartbeat") side.set(server.id, 1);
    if (!isTooMuch) send.call(world, sender, message, snapshot);
    if (side.size > 0) world.send = send;
    return true;
  };
}

describe("while one command ends many leases, in turns", () => {
  const count = 100;

  test("a new watch gets each end once and in order, and progress covers only sent events", () => {
    const cluster = inTurns({ servers: 1 });
    const server = cluster.leader();
    const before = leasesWithKeys(cluster, server, count);
    const [asking, ...others] = Array.from({ length: 12 }, () => cluster.watch(server, all));
    cluster.run(3_000);
    const isHalfway = () => server.replica!.isApplying && server.replica!.status().leases < count;
    runUntil(cluster, 0.2, isHalfway);
    const late = cluster.watch(server, { ...all, startRevision: BigInt(before + 1) });
    asking!.send({ case: "progressRequest", value: {} });
    cluster.run(3_000);
    const ends = fromTo(before + 1, before + count);
    for (const { responses } of [asking!, late, ...others]) expect(revisionsOf(responses)).toEqual(ends);
    const progress = asking!.responses.findIndex(({ watchId }) => watchId === -1n);
    const told = revisionsOf(asking!.responses.slice(0, progress)).at(-1) ?? before;
    expect(asking!.responses[progress]!.header!.revision).toBe(BigInt(told));
  });

  test("a server that installs a snapshot misses no end", () => {
    const cluster = inTurns({}, { snapshotEntries: 10, keepEntries: 2 });
    const leader = cluster.leader();
    const [follower] = cluster.followers();
    const before = leasesWithKeys(cluster, leader, count);
    const { responses } = cluster.watch(follower!, all);
    const atEnd = leader.replica!.status().lastIndex;
    cutOffBeforeCommit(cluster, follower!, atEnd);
    runUntil(cluster, 50, () => cluster.world.side.size > 0);
    expect(follower!.replica!.status()).toMatchObject({ commit: atEnd, lastIndex: atEnd + 1 });
    cluster.run(3_000);
    for (let number = 0; number < 40; number += 1) {
      cluster.send(leader, put(`x${number}`, "1"));
      cluster.run(20);
    }
    cluster.run(2_000);
    expect(follower!.replica!.status().revision).toBe(before);
    cluster.heal();
    let wasApplying = false;
    const { snapshotIndex } = follower!.replica!.status();
    runUntil(cluster, 0.1, () => {
      if (follower!.replica!.status().snapshotIndex > snapshotIndex) return true;
      wasApplying = follower!.replica!.isApplying;
      return false;
    });
    expect(wasApplying).toBe(true);
    cluster.run(5_000);
    expect(revisionsOf(responses)).toEqual(fromTo(before + 1, before + count + 40));
  });
});

test("a watch that begins in the future gets nothing earlier, even of a command published in turns", () => {
  const cluster = inTurns({ servers: 1 });
  const server = cluster.leader();
  const before = leasesWithKeys(cluster, server, 100);
  for (let number = 0; number < 12; number += 1) cluster.watch(server, all);
  const { responses } = cluster.watch(server, { ...all, startRevision: BigInt(before + 60) });
  cluster.run(10_000);
  expect(revisionsOf(responses)).toEqual(fromTo(before + 60, before + 100));
});
