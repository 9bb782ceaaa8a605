import { describe, expect, test } from "vitest";
import { VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import {
  alarm,
  compact,
  grant,
  keepAlive,
  put,
  range,
  remove,
  revoke,
  text,
  txn,
} from "@leasehold/sim/inner/core/world/requests.js";
import type { SimServer } from "@leasehold/sim/inner/core/world/server.js";
import { AlarmRequest_AlarmAction as Action, AlarmType } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { sizeOf } from "../state/revisions.js";
import { withFaults } from "../../../../test/planted/switches.js";
import { restoreState, snapshotPieces } from "../state/snapshot.js";
import { CoreState } from "../state/state.js";
import type { CommandBody, Context } from "./context.js";
import { SpaceKeeping } from "./space-keeping.js";

const PUT = "etcdserverpb.PutResponse";
const RANGE = "etcdserverpb.RangeResponse";
const ALARM = "etcdserverpb.AlarmResponse";
const GRANT = "etcdserverpb.LeaseGrantResponse";

const value = "x".repeat(1_000);

function fill(
  cluster: VirtualCluster,
  server: SimServer,
  count: number,
  key = (number: number) => `k${number}`,
) {
  for (let number = 0; number < count; number += 1) cluster.send(server, put(key(number), value));
  cluster.run(500);
}

describe("a quota", () => {
  const quotaBytes = 50_000;

  test("a leader whose removal is in its log raises no alarm for itself: nobody could disarm it", () => {
    const proposed: CommandBody[] = [];
    const raft = { membership: { voters: [1n, 2n], learners: [] } };
    const state = new CoreState();
    const fields = { id: 1n, appliedIndex: 1, nowMs: 0, raft, state };
    const propose = (body: CommandBody) => {
      proposed.push(body);
      return { accepted: true, index: 2 };
    };
    const space = new SpaceKeeping({ ...fields, propose } as unknown as Context, undefined, -1);
    raft.membership = { voters: [2n], learners: [] };
    space.tick();
    expect(proposed).toEqual([]);
    raft.membership = { voters: [1n, 2n], learners: [] };
    space.tick();
    expect(proposed).toMatchObject([{ case: "spaceAlarm", value: { member: 1n } }]);
  });

  test("commands that need space are refused on all servers until there is room and the alarm is disarmed", () => {
    const cluster = new VirtualCluster({ quotaBytes });
    const leader = cluster.leader();
    const [follower] = cluster.followers();
    const { ID } = cluster.ask(leader, GRANT, grant(60));
    expect(cluster.ask(follower!, ALARM, alarm()).alarms).toEqual([]);
    fill(cluster, follower!, 60);
    const { alarms } = cluster.ask(follower!, ALARM, alarm());
    expect(alarms).toMatchObject([{ memberID: leader.id, alarm: AlarmType.NOSPACE }]);
    for (const server of cluster.world.servers) {
      expect(server.replica!.status().spaceAlarms).toEqual([leader.id]);
      for (const refused of [
        put("a", "1"),
        grant(60),
        grant(9_000_000_001),
        txn({ failure: [{ request: { case: "requestPut", value: { key: Uint8Array.of(1) } } }] }),
      ])
        expect(cluster.failure(server, refused)).toBe("noSpace");
      for (const taken of [range("k1"), keepAlive(ID), remove("k1"), alarm()])
        expect(cluster.failure(server, taken)).toBe("none");
    }
    // Raising an alarm that is already raised returns it, as in etcd.
    const on = alarm({ action: Action.ACTIVATE, memberID: leader.id, alarm: AlarmType.NOSPACE });
    expect(cluster.ask(follower!, ALARM, on).alarms).toMatchObject([{ memberID: leader.id }]);
    // The state is no smaller for that: the alarm is raised again.
    cluster.ask(follower!, ALARM, alarm({ action: Action.DEACTIVATE, memberID: leader.id, alarm: 1 }));
    cluster.run(500);
    expect(cluster.failure(follower!, put("a", "1"))).toBe("noSpace");
    for (let number = 0; number < 60; number += 1) cluster.outcome(leader, remove(`k${number}`));
    const { revision } = leader.replica!.status();
    expect(cluster.failure(follower!, compact(BigInt(revision)))).toBe("none");
    cluster.run(1_000);
    const off = alarm({ action: Action.DEACTIVATE, memberID: leader.id, alarm: AlarmType.NOSPACE });
    expect(cluster.ask(follower!, ALARM, off).alarms).toMatchObject([{ memberID: leader.id }]);
    expect(cluster.ask(follower!, ALARM, off).alarms).toEqual([]);
    cluster.ask(follower!, PUT, put("a", "1"));
    cluster.ask(leader, GRANT, grant(60));
  });

  test("a command proposed before the alarm and applied after it is refused on all servers", () => {
    const cluster = new VirtualCluster({ quotaBytes, latencyMs: 30 });
    const leader = cluster.leader();
    const [one, other] = cluster.followers();
    const sent = Array.from({ length: 200 }, (_, number) =>
      cluster.send(number % 2 === 0 ? one! : other!, put(`k${number}`, value)),
    );
    cluster.run(3_000);
    const refused = sent.filter(({ outcome }) => outcome instanceof Error);
    expect(refused.length).toBeGreaterThan(0);
    const [first, ...rest] = cluster.world.servers.map(({ replica }) => replica!.status());
    for (const status of rest)
      expect(status).toMatchObject({ revision: first!.revision, keys: first!.keys, bytes: first!.bytes });
    expect(leader.isUp).toBe(true);
  });

  test("an alarm survives a snapshot", () => {
    const state = new CoreState();
    state.spaceAlarms.add(9n).add(3n);
    expect(restoreState(snapshotPieces(state)).spaceAlarms).toEqual(new Set([3n, 9n]));
  });

  test("history gives way before anything is refused", () => {
    const cluster = new VirtualCluster({ servers: 1, quotaBytes, keepRevisions: 1_000_000 });
    const leader = cluster.leader();
    for (let round = 0; round < 30; round += 1) fill(cluster, leader, 10, () => "k");
    const { bytes, compacted, spaceAlarms } = leader.replica!.status();
    expect(spaceAlarms).toEqual([]);
    expect(compacted).toBeGreaterThan(200);
    expect(bytes).toBeLessThan(quotaBytes);
    expect(text(cluster.ask(leader, RANGE, range("k")).kvs[0]!.value)).toBe(value);
    const grown = withFaults({ historyGrows: true }, () => {
      const other = new VirtualCluster({ servers: 1, quotaBytes, keepRevisions: 1_000_000 });
      fill(other, other.leader(), 300, () => "k");
      return other.world.leader()!.replica!.status().spaceAlarms;
    });
    expect(grown).toHaveLength(1);
  });
});

describe("history", () => {
  test("the newest revisions are kept and others compacted, whichever server leads", () => {
    const cluster = new VirtualCluster({ keepRevisions: 100 });
    const leader = cluster.leader();
    for (let round = 0; round < 5; round += 1) fill(cluster, leader, 100);
    cluster.run(1_500);
    const { compacted, revision } = leader.replica!.status();
    expect(revision - compacted).toBeGreaterThanOrEqual(100);
    expect(revision - compacted).toBeLessThanOrEqual(110);
    cluster.world.crash(leader);
    const next = cluster.leader();
    fill(cluster, next, 50);
    cluster.run(1_500);
    const after = next.replica!.status();
    expect(after.revision - after.compacted).toBeLessThanOrEqual(110);
  });

  test("with a retention by time, a revision is kept at least that long, and at most about a tenth longer", () => {
    const cluster = new VirtualCluster({ servers: 1, keepMs: 60_000 });
    const leader = cluster.leader();
    const begunMs = cluster.world.nowMs;
    const madeMs = new Map<number, number>();
    for (let minute = 0; minute < 5; minute += 1)
      for (let second = 0; second < 60; second += 1) {
        cluster.send(leader, put("k", value));
        cluster.run(1_000);
        const { compacted, revision } = leader.replica!.status();
        madeMs.set(revision, cluster.world.nowMs);
        const ageMs = cluster.world.nowMs - (madeMs.get(Math.max(compacted, 0)) ?? begunMs);
        // Before the first compaction there is no age.
        expect(compacted > 0 ? ageMs : Infinity).toBeGreaterThanOrEqual(58_000);
        expect(ageMs).toBeLessThan(minute < 2 ? 120_000 : 70_000);
      }
  });
});

describe("the size of the state", () => {
  test("is counted correctly after changes, compactions and restarts", () => {
    const cluster = new VirtualCluster({ servers: 1, keepRevisions: 20, limits: { snapshotEntries: 50 } });
    const leader = cluster.leader();
    for (let round = 0; round < 5; round += 1) {
      fill(cluster, leader, 30, (number) => `k${number % 7}`);
      const { ID } = cluster.ask(leader, GRANT, grant(60));
      cluster.outcome(leader, remove(`k${round}`));
      cluster.outcome(leader, revoke(ID));
    }
    const { bytes } = leader.replica!.status();
    const { reference } = cluster.world;
    let counted = 0;
    for (const history of reference.state.revisions.histories())
      for (const version of history) counted += sizeOf(version);
    expect(bytes).toBe(counted);
    cluster.world.crash(leader);
    cluster.world.start(leader);
    cluster.leader();
    expect(leader.replica!.status().bytes).toBe(counted);
  });
});
