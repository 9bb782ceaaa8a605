import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { failureOf, VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { type Faults, withFaults } from "../../../../test/planted/switches.js";
import { connected } from "@leasehold/sim/inner/core/world/plan.js";
import { put, range } from "@leasehold/sim/inner/core/world/requests.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { PeerMessage } from "./types.js";

/** Servers whose connections have a limited capacity, and are cut when a test says so. */
const RANGE = "etcdserverpb.RangeResponse";
const PUT = "etcdserverpb.PutResponse";

const connections = { ...connected, cutEveryMs: Infinity, timeoutMs: 7_000 };

function bothWays<T>(mistake: Partial<Faults>, body: () => T): { right: T; wrong: T } {
  return { right: body(), wrong: withFaults(mistake, body) };
}

test("proposals in flight on a lost connection are sent once more, and applied once", () => {
  const cutAt = (afterMs: number, waitedMs: number) => {
    const cluster = new VirtualCluster({ ...connections, seed: 1 + afterMs });
    cluster.leader();
    const [follower] = cluster.followers();
    cluster.ask(follower!, PUT, put("a", "0"));
    const sent = [1, 2, 3].map((number) => cluster.send(follower!, put("a", `${number}`)));
    cluster.run(afterMs);
    // Cuts all connections, so that the one that matters is included.
    for (let cuts = 0; cuts < 12; cuts += 1) cluster.world.cutConnection();
    cluster.run(waitedMs);
    const failures = sent.map(({ outcome }) => failureOf(outcome));
    const { kvs } = cluster.ask(follower!, RANGE, range("a"));
    return { failures: failures.join(), versions: Number(kvs[0]!.version) };
  };
  const moments = Array.from({ length: 8 }, (_, index) => 12 * index);
  for (const afterMs of moments)
    expect({ afterMs, ...cutAt(afterMs, 2_500) }).toEqual({
      afterMs,
      failures: "none,none,none",
      versions: 4,
    });
  const isLost = (afterMs: number) => cutAt(afterMs, 8_000).failures.includes("timeout");
  expect(withFaults({ lostProposalsStayLost: true }, () => moments.some(isLost))).toBe(true);
});

test("a repeated proposal is appended once, and a repeated refusal is the same", () => {
  const { right, wrong } = bothWays({ repeatedIsAppendedAgain: true }, () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    const [follower] = cluster.followers();
    let repeated = 0;
    const { send } = cluster.world;
    cluster.world.send = (sender, message, snapshot) => {
      send.call(cluster.world, sender, message, snapshot);
      if (message.kind !== "propose" || repeated > 0) return true;
      repeated += 1;
      return send.call(cluster.world, sender, { ...message, again: true }, snapshot);
    };
    cluster.ask(follower!, PUT, put("a", "1"));
    cluster.run(500);
    const { kvs } = cluster.ask(leader, RANGE, range("a"));
    return { repeated, versions: Number(kvs[0]!.version) };
  });
  expect({ right, wrong }).toEqual({
    right: { repeated: 1, versions: 1 },
    wrong: { repeated: 1, versions: 2 },
  });
});

test("a leader of a later term does not claim that a repeated proposal was never appended", () => {
  const { right, wrong } = bothWays({ refusalOfARepeatCounts: true }, () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    const [follower] = cluster.followers();
    const { term } = leader.replica!.status();
    const body = { case: "put", value: { key: new Uint8Array(1) } } as const;
    const command = toBinary(CommandSchema, create(CommandSchema, { proposer: follower!.id, body }));
    const head = { from: follower!.id, to: leader.id, number: 1, term: term - 1, life: 1, settled: 1 };
    const refusals: PeerMessage[] = [];
    const { send } = cluster.world;
    cluster.world.send = (sender, message, snapshot) => {
      if (message.kind === "leader-refusal") refusals.push(message);
      return send.call(cluster.world, sender, message, snapshot);
    };
    const again = { kind: "propose", ...head, again: true, command } as const;
    leader.step({ kind: "message", message: again });
    cluster.run(100);
    return refusals.length;
  });
  expect({ right, wrong }).toEqual({ right: 0, wrong: 1 });
});

test("proposals that exceed the connection's room wait at their sender, and are sent in order", () => {
  const { right, wrong } = bothWays({ notSentIsForgotten: true }, () => {
    const cluster = new VirtualCluster({ ...connections, bytesPerMs: 20 });
    cluster.leader();
    const [follower] = cluster.followers();
    const sent = Array.from({ length: 40 }, (_, index) =>
      cluster.send(follower!, put(`k${index}`, "x".repeat(100))),
    );
    cluster.run(10_000);
    const waited = cluster.world.counters.backPressure > 10;
    return { waited, failures: sent.filter(({ outcome }) => failureOf(outcome) !== "none").length };
  });
  expect(right).toEqual({ waited: true, failures: 0 });
  expect(wrong.failures).toBeGreaterThan(20);
});

test("a leader that sends more than a second's capacity of its connections keeps leading", () => {
  const { right, wrong } = bothWays({ oneConnectionForAll: true }, () => {
    const cluster = new VirtualCluster({ ...connections, timeoutMs: 20_000 });
    const leader = cluster.leader();
    const elections = cluster.world.counters.elections;
    const sent = cluster.send(leader, put("a", "x".repeat(20_000)));
    cluster.run(19_000);
    return { failure: failureOf(sent.outcome), elections: cluster.world.counters.elections - elections };
  });
  expect(right).toEqual({ failure: "none", elections: 0 });
  expect(wrong.elections).toBeGreaterThan(0);
});

test("a long read does not keep the leader from forgetting settled proposals", () => {
  const cluster = new VirtualCluster({ timeoutMs: 20_000 });
  cluster.leader();
  const [follower] = cluster.followers();
  const settled: number[] = [];
  const { send } = cluster.world;
  cluster.world.send = (sender, message, snapshot) => {
    if (message.kind === "leader-answer") return true;
    if (message.kind === "propose" && message.life > 0) settled.push(message.settled);
    return send.call(cluster.world, sender, message, snapshot);
  };
  const reading = cluster.send(follower!, range("a"));
  for (let number = 0; number < 3; number += 1) cluster.ask(follower!, PUT, put("a", `${number}`));
  expect(reading.outcome).toBeUndefined();
  expect(new Set(settled).size).toBe(3);
});
