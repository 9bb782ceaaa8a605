import { create, fromBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { withOtherValue } from "../../../../test/core/support/tampered.js";
import { VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { withFaults } from "../../../../test/planted/switches.js";
import {
  alarm,
  compact,
  grant,
  keepAlive,
  put,
  range,
  register,
  remove,
  revoke,
  txn,
  bytes,
} from "@leasehold/sim/inner/core/world/requests.js";
import type { SimServer } from "@leasehold/sim/inner/core/world/server.js";
import { AlarmRequest_AlarmAction as Action, AlarmType } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { restoreState, snapshotPieces } from "../state/snapshot.js";
import { CoreState } from "../state/state.js";
import { hashOfKeys } from "../state/hash.js";
import { compare, type Copy, type CopyMessage } from "./copies.js";
import { type CheckedServer, CorruptionCheck } from "./corruption-check.js";
import type { ClientRequest } from "../replica/types.js";

const RANGE = "etcdserverpb.RangeResponse";
const ALARM = "etcdserverpb.AlarmResponse";
const GRANT = "etcdserverpb.LeaseGrantResponse";
const PUT = "etcdserverpb.PutResponse";

const corruptAlarms = (server: SimServer) => server.replica!.status().corruptAlarms;

/** Changes a key's value on the server's disk, with valid checksums. */
function tamper(cluster: VirtualCluster, server: SimServer, key = "k1"): void {
  const { world } = cluster;
  server.step({ kind: "take-snapshot" });
  cluster.run(500);
  world.crash(server);
  const { snapshot } = server.disk;
  server.disk.snapshot = { meta: snapshot!.meta, pieces: withOtherValue(snapshot!.pieces, key) };
  world.tampered.add(server.id);
  world.start(server);
}

function filled(servers = 3): VirtualCluster {
  const cluster = new VirtualCluster({ servers, corruptCheckMs: 2_000 });
  const leader = cluster.leader();
  for (let number = 0; number < 5; number += 1) cluster.ask(leader, PUT, put(`k${number}`, `v${number}`));
  return cluster;
}

describe("the servers' keys are compared", () => {
  test("periodically by the leader, and equal ones are not reported", () => {
    const cluster = filled();
    cluster.run(10_000);
    const { comparisons, sameCopies } = cluster.world.counters;
    expect(comparisons).toBeGreaterThanOrEqual(4);
    expect(sameCopies).toBe(2 * comparisons);
    for (const server of cluster.world.servers) expect(corruptAlarms(server)).toEqual([]);
  });

  test("never, if disabled", () => {
    const cluster = new VirtualCluster();
    cluster.leader();
    cluster.run(10_000);
    expect(cluster.world.counters.comparisons).toBe(0);
  });

  test("a follower with a different value is reported on all servers", () => {
    const cluster = filled();
    const [follower] = cluster.followers();
    tamper(cluster, follower!);
    cluster.run(5_000);
    for (const server of cluster.world.servers) expect(corruptAlarms(server)).toEqual([follower!.id]);
  });

  test("a leader that a majority contradicts reports itself", () => {
    const cluster = filled();
    const leader = cluster.leader();
    tamper(cluster, leader);
    for (let tries = 0; !leader.leads && tries < 20; tries += 1) {
      cluster.leader().step({ kind: "transfer", to: leader.id });
      cluster.run(500);
    }
    expect(leader.leads).toBe(true);
    cluster.run(5_000);
    expect(leader.leads).toBe(true);
    for (const server of cluster.world.servers) expect(corruptAlarms(server)).toEqual([leader.id]);
  });

  test("when two servers differ, neither is blamed", () => {
    const cluster = filled(2);
    const [follower] = cluster.followers();
    cluster.world.tampered.add(0n);
    tamper(cluster, follower!);
    cluster.run(5_000);
    for (const server of cluster.world.servers) expect(corruptAlarms(server)).toEqual([0n]);
  });

  test("servers that are down do not delay the comparison of the others", () => {
    const cluster = filled();
    const [down, follower] = cluster.followers();
    cluster.world.crash(down!);
    cluster.run(10_000);
    const { comparisons, sameCopies } = cluster.world.counters;
    expect(sameCopies).toBeGreaterThanOrEqual(comparisons);
    cluster.world.tampered.add(0n);
    tamper(cluster, follower!);
    cluster.run(8_000);
    // One against one until the third server is up.
    expect(corruptAlarms(cluster.leader())).toEqual([0n]);
    cluster.world.start(down!);
    cluster.run(8_000);
    expect(corruptAlarms(cluster.leader())).toEqual([0n, follower!.id]);
  });

  /** The follower receives the question together with later entries. */
  function comparedLate(later: ClientRequest): VirtualCluster {
    const cluster = filled();
    const leader = cluster.leader();
    const [follower] = cluster.followers();
    for (let number = 0; number < 5; number += 1) cluster.ask(leader, PUT, put("k1", `again ${number}`));
    cluster.isolate(follower!);
    leader.step({ kind: "compare-copies" });
    cluster.run(50);
    const sent = cluster.send(leader, later);
    cluster.run(50);
    expect(sent.outcome).not.toBeUndefined();
    // The server has caught up before the question is repeated.
    cluster.heal();
    cluster.run(3_000);
    expect(cluster.world.counters.comparisons).toBeGreaterThan(1);
    for (const server of cluster.world.servers) expect(corruptAlarms(server)).toEqual([]);
    return cluster;
  }
  const falseAlarm = /counts as corrupt, and is not/;

  test("copies that were compacted to different revisions are not compared", () => {
    comparedLate(compact(9n));
    withFaults({ comparedAcrossCompactions: true }, () => {
      expect(() => comparedLate(compact(9n))).toThrow(falseAlarm);
    });
  });

  test("a follower answers for the requested revision, not for its newest one", () => {
    comparedLate(put("k1", "later"));
    withFaults({ copyOfAnotherRevision: true }, () => {
      expect(() => comparedLate(put("k1", "later"))).toThrow(falseAlarm);
    });
  });

  test("without a comparison, nothing is detected", () => {
    withFaults({ copiesNotCompared: true }, () => {
      const cluster = filled();
      const [follower] = cluster.followers();
      tamper(cluster, follower!);
      cluster.run(5_000);
      expect(corruptAlarms(cluster.leader())).toEqual([]);
    });
  });
});

describe("while the alarm CORRUPT is raised", () => {
  const raise = alarm({ action: Action.ACTIVATE, memberID: 7n, alarm: AlarmType.CORRUPT });
  const disarm = alarm({ action: Action.DEACTIVATE, memberID: 7n, alarm: AlarmType.CORRUPT });

  test("keys and leases do not change and can be read, as in etcd", () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    cluster.ask(leader, PUT, put("a", "1"));
    const { ID } = cluster.ask(leader, GRANT, grant(60));
    expect(cluster.ask(leader, ALARM, raise).alarms).toMatchObject([
      { memberID: 7n, alarm: AlarmType.CORRUPT },
    ]);
    const putInTxn = {
      request: { case: "requestPut", value: { key: bytes("a"), value: bytes("2") } },
    } as const;
    const refused = [
      put("a", "2"),
      remove("a"),
      txn({ success: [putInTxn] }),
      compact(2n),
      grant(5),
      // Also an invalid request: the alarm takes precedence.
      grant(9_000_000_001),
      register("name", 5),
      revoke(ID),
    ];
    const [follower] = cluster.followers();
    for (const request of refused)
      for (const server of [leader, follower!]) expect(cluster.failure(server, request)).toBe("corrupt");
    expect(cluster.ask(follower!, RANGE, range("a")).kvs).toHaveLength(1);
    const readInTxn = { request: { case: "requestRange", value: { key: bytes("a") } } } as const;
    expect(cluster.failure(leader, txn({ success: [readInTxn] }))).toBe("none");
    expect(cluster.failure(leader, keepAlive(ID))).toBe("none");
    cluster.ask(leader, ALARM, disarm);
    expect(cluster.failure(leader, put("a", "2"))).toBe("none");
  });

  test("a command proposed before the alarm but logged after it is refused on all servers", () => {
    const state = new CoreState();
    state.corruptAlarms.add(7n);
    const value = { key: bytes("a"), value: bytes("1") };
    const { answer } = state.apply(create(CommandSchema, { body: { case: "put", value } }), 1);
    expect(answer).toMatchObject({ failure: "corrupt" });
    expect(state.revisions.current).toBe(1);
  });

  /** @returns the number of keys during the alarm, and after it was disarmed */
  function leaseBeyondItsTime(): number[] {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    const { ID } = cluster.ask(leader, GRANT, grant(2));
    cluster.ask(leader, PUT, put("held", "1", ID));
    cluster.ask(leader, ALARM, raise);
    const keys = () => leader.replica!.status().keys;
    cluster.run(6_000);
    const during = keys();
    cluster.ask(leader, ALARM, disarm);
    cluster.run(1_000);
    return [during, keys()];
  }

  test("leases do not end until the alarm is disarmed", () => {
    expect(leaseBeyondItsTime()).toEqual([1, 0]);
    withFaults({ leasesEndInCorruption: true }, () => expect(leaseBeyondItsTime()).toEqual([0, 0]));
  });

  /** @returns for how many of the alarms, raised at about the end of a lease, the lease never ended */
  function endsForgotten(): number {
    let forgotten = 0;
    // Slow disks: the alarm is in the log for a while before it is applied.
    for (let afterMs = 1_900; afterMs < 2_200; afterMs += 25) {
      const cluster = new VirtualCluster({ latencyMs: 10, writeMs: 80 });
      const leader = cluster.leader();
      cluster.ask(leader, GRANT, grant(2));
      cluster.run(afterMs);
      cluster.send(leader, raise);
      cluster.run(500);
      cluster.ask(leader, ALARM, disarm);
      cluster.run(1_000);
      forgotten += leader.replica!.status().leases;
    }
    return forgotten;
  }

  test("a lease that expired while the alarm was being committed ends after it", () => {
    expect(endsForgotten()).toBe(0);
    withFaults({ endsForgottenInCorruption: true }, () => expect(endsForgotten()).toBeGreaterThan(0));
  });

  test("the space alarm does not hide it, and each of the two is disarmed separately", () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    cluster.ask(leader, ALARM, raise);
    cluster.ask(leader, ALARM, alarm({ action: Action.ACTIVATE, memberID: 8n, alarm: AlarmType.NOSPACE }));
    expect(cluster.failure(leader, put("a", "1"))).toBe("corrupt");
    expect(cluster.failure(leader, remove("a"))).toBe("corrupt");
    const listed = (asked: AlarmType) =>
      cluster.ask(leader, ALARM, alarm({ alarm: asked })).alarms.map(({ alarm: kind }) => kind);
    expect(listed(AlarmType.NONE)).toEqual([AlarmType.CORRUPT, AlarmType.NOSPACE]);
    expect(listed(AlarmType.CORRUPT)).toEqual([AlarmType.CORRUPT]);
    expect(listed(AlarmType.NOSPACE)).toEqual([AlarmType.NOSPACE]);
    cluster.ask(leader, ALARM, disarm);
    expect(cluster.failure(leader, put("a", "1"))).toBe("noSpace");
    expect(cluster.failure(leader, remove("a"))).toBe("none");
  });

  test("it survives a snapshot, and a member's removal ends it", () => {
    const state = new CoreState();
    state.corruptAlarms.add(9n).add(3n);
    expect(restoreState(snapshotPieces(state)).corruptAlarms).toEqual(new Set([3n, 9n]));
    const member = { peerUrls: [], clientUrls: [], learner: false, disk: 0n, joining: false };
    state.members.set([3n, 4n].map((id) => ({ ...member, id, name: `${id}` })));
    const remove3 = create(CommandSchema, {
      body: { case: "memberChange", value: { kind: 3, member: 3n, peerUrls: [] } },
    });
    state.apply(remove3, 1);
    expect(state.corruptAlarms).toEqual(new Set([9n]));
  });

  test("alarms logged by earlier versions are space alarms", () => {
    const before = Uint8Array.from([0x6a, 4, 8, 5, 16, 1]);
    const { body } = fromBinary(CommandSchema, before);
    expect(body).toMatchObject({ case: "spaceAlarm", value: { member: 5n, raised: true } });
  });
});

describe("reports of comparisons", () => {
  const copy = (member: number, hash: number, compacted = 3): Copy => ({
    member: BigInt(member),
    outcome: "hash",
    compacted,
    hash,
  });
  const voters = [1n, 2n, 3n];
  const others = (...copies: (Copy | undefined)[]) =>
    new Map(copies.map((each, index) => [BigInt(index + 2), each]));

  test.each([
    ["all are the same", [copy(2, 7), copy(3, 7)], []],
    ["one differs", [copy(2, 7), copy(3, 8)], [3n]],
    ["the asker differs", [copy(2, 8), copy(3, 8)], [1n]],
    ["all differ", [copy(2, 8), copy(3, 9)], [0n]],
    ["one differs, one is silent", [copy(2, 8), undefined], [0n]],
    ["one is the same, one is silent", [copy(2, 7), undefined], []],
    ["one has compacted more", [copy(2, 7), copy(3, 8, 4)], []],
    ["one has compacted less", [copy(2, 7), copy(3, 8, 2)], []],
    ["nobody answers", [undefined, undefined], []],
    [
      "one has come to a lower revision",
      [copy(2, 7), { ...copy(3, 0, 9), outcome: "behind" as const }],
      [3n],
    ],
    ["one has compacted it away", [copy(2, 7), { ...copy(3, 0, 9), outcome: "compacted" as const }], []],
  ])("%s", (_, copies, corrupt) => {
    expect(compare(9, copy(1, 7), others(...copies), { voters }).corrupt).toEqual(corrupt);
  });

  test.each([
    ["one differs, and one is silent that could say who is right", [copy(2, 8), undefined], true],
    ["one differs, and one is of another history", [copy(2, 8), copy(3, 7, 4)], true],
    ["all differ", [copy(2, 8), copy(3, 9)], false],
    ["one of two voters differs", [copy(2, 8), undefined], false, [1n, 2n]],
    ["a learner is silent", [copy(2, 8), undefined], false, [1n, 2n]],
    ["two of five differ from each other and from this one", [copy(2, 8), copy(3, 9), undefined], true, 4],
    ["three of five differ, all from each other", [copy(2, 8), copy(3, 9), copy(4, 6), undefined], false, 5],
    ["a majority is the same", [copy(2, 7), undefined], false],
    ["a majority is another", [copy(2, 8), copy(3, 8)], false],
  ])("%s: whether it is open who is right", (_, copies, isOpen, of: number | bigint[] = 3) => {
    const asked = Array.isArray(of)
      ? of
      : Array.from({ length: of === 3 ? 3 : 5 }, (__, at) => BigInt(at + 1));
    expect(compare(9, copy(1, 7), others(...copies), { voters: asked }).isOpen).toBe(isOpen);
  });

  test("a learner is checked, and has no vote in the check", () => {
    const differs = compare(9, copy(1, 7), others(copy(2, 7), undefined, copy(4, 8)), { voters });
    expect(differs.corrupt).toEqual([4n]);
    const agrees = compare(9, copy(1, 7), others(copy(2, 8), undefined, copy(4, 7)), { voters });
    expect(agrees).toMatchObject({ corrupt: [0n], same: [1n, 4n], different: [2n], silent: [3n] });
  });
});

/** The leader of three servers. Tests replace the membership in its log. */
class Leader implements CheckedServer {
  readonly id = 1n;
  nowMs = 1_000;
  readonly electionMs = 1_000;
  readonly state = new CoreState();
  readonly appliedIndex = 5;
  raft = { membership: { voters: [1n, 2n, 3n], learners: [] as bigint[] } };
  readonly limits = { unitsPerTurn: 1_000 };
  readonly random: { next: () => number };
  readonly asked: number[] = [];
  readonly raised: bigint[] = [];
  readonly check: CorruptionCheck;

  constructor(draw = 0.5) {
    this.random = { next: () => draw };
    this.check = new CorruptionCheck(this, () => 7, 500);
    this.check.tick(true);
    this.nowMs += 500;
    this.check.tick(true);
    this.check.turn();
  }

  readonly send = (message: CopyMessage): void => {
    if (message.kind === "copy-question") this.asked.push(message.number);
  };

  propose({ value }: { value: { member: bigint } }): void {
    this.raised.push(value.member);
  }

  /** Answers from the other servers, each with a hash. */
  hears(hashes: readonly [bigint, number][]): void {
    for (const [from, hash] of hashes)
      this.check.answered({
        kind: "copy-answer",
        from,
        to: 1n,
        number: this.asked[0]!,
        outcome: "hash",
        compacted: this.state.revisions.compacted,
        hash,
      });
    this.check.tick(true);
  }
}

describe("a comparison during which the membership changed", () => {
  const same = (leader: Leader): number => {
    const steps = hashOfKeys(leader.state.revisions.view(), leader.state.revisions.current, () => 7);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  };

  test("raises no alarm for a member that was removed meanwhile: nobody would disarm it", () => {
    const before = new Leader();
    before.hears([
      [2n, same(before)],
      [3n, 99],
    ]);
    expect(before.raised).toEqual([3n]);
    const leader = new Leader();
    leader.raft = { membership: { voters: [1n, 2n], learners: [] } };
    leader.hears([
      [2n, same(leader)],
      [3n, 99],
    ]);
    expect(leader.raised).toEqual([]);
    expect(leader.check.takeComparison()).toMatchObject({ corrupt: [], different: [] });
  });

  test("raises no alarm for a leader whose own removal is not committed yet", () => {
    const leader = new Leader();
    leader.raft = { membership: { voters: [2n, 3n], learners: [] } };
    leader.hears([
      [2n, 99],
      [3n, 99],
    ]);
    expect(leader.raised).toEqual([]);
  });
});

test("an answer to a comparison begun before a restart does not count after it", () => {
  const [first] = new Leader(0.1).asked;
  const [second] = new Leader(0.100001).asked;
  expect(Math.abs(second! - first!)).toBeGreaterThan(1_000_000);
  const life = new Leader(0.1);
  life.hears([
    [2n, 1],
    [3n, 1],
  ]);
  life.nowMs += 1_000;
  life.check.tick(true);
  life.check.turn();
  expect(new Set(life.asked)).toEqual(new Set([first, first! + 1]));
});
