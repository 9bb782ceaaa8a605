import { describe, expect, test } from "vitest";
import { failureOf, type Sent, VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import {
  grant,
  keepAlive,
  put,
  range,
  register,
  revoke,
  text,
  timeToLive,
} from "@leasehold/sim/inner/core/world/requests.js";
import type { SimServer } from "@leasehold/sim/inner/core/world/server.js";
import { type Faults, withFaults } from "../../../../test/planted/switches.js";

/**
 * The requirements of *Patterns of Distributed Systems*, "Lease", one by one. Each possible mistake is made
 * once, to see that the test detects it.
 */

const PUT = "etcdserverpb.PutResponse";
const RANGE = "etcdserverpb.RangeResponse";
const GRANT = "etcdserverpb.LeaseGrantResponse";
const KEEP = "etcdserverpb.LeaseKeepAliveResponse";
const LEFT = "etcdserverpb.LeaseTimeToLiveResponse";

function granted(cluster: VirtualCluster, server: SimServer, ttlSeconds: number): bigint {
  return cluster.ask(server, GRANT, grant(ttlSeconds)).ID;
}

/** The outcomes of `body` without and with the mistake. */
function bothWays<T>(mistake: Partial<Faults>, body: () => T): { right: T; wrong: T } {
  return { right: body(), wrong: withFaults(mistake, body) };
}

const leasesAt = (server: SimServer) => server.replica!.status().leases;
const isAnswered = (sent: Sent) => sent.outcome !== undefined;

describe("1: commands of the replicated log, answered when the high-water mark passes them, never earlier", () => {
  test("a leader without a majority answers nothing", () => {
    const { right, wrong } = bothWays({ answeredWhenProposed: true }, () => {
      const cluster = new VirtualCluster();
      const leader = cluster.leader();
      cluster.isolate(leader);
      const sent = cluster.send(leader, put("a", "1"));
      cluster.run(700);
      const early = isAnswered(sent);
      cluster.heal();
      cluster.run(5_500);
      return { early, isAnswered: isAnswered(sent) };
    });
    expect(right).toEqual({ early: false, isAnswered: true });
    expect(wrong.early).toBe(true);
  });

  test("a follower forwards a write to its leader, and answers its client", () => {
    const cluster = new VirtualCluster();
    cluster.leader();
    for (const [index, server] of cluster.world.servers.entries())
      expect(cluster.ask(server, PUT, put("a", `${index}`)).header).toMatchObject({
        clusterId: 77n,
        memberId: server.id,
        revision: BigInt(2 + index),
      });
  });
});

describe("2: a duplicate is refused when it is applied: several requests are in flight at once", () => {
  const race = (request: () => ReturnType<typeof grant>) => () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    const sent = [leader, ...cluster.followers()].map((server) => cluster.send(server, request()));
    cluster.run(500);
    return sent.map(({ outcome }) => failureOf(outcome)).sort();
  };

  test("of several grants of one name, one succeeds (`registerLease`)", () => {
    const { right, wrong } = bothWays(
      { duplicatesUncheckedAtApply: true },
      race(() => register("cart", 9)),
    );
    expect(right).toEqual(["leaseNameTaken", "leaseNameTaken", "none"]);
    expect(wrong).toEqual(["none", "none", "none"]);
  });

  test("of several grants of one id, one succeeds", () => {
    const { right, wrong } = bothWays(
      { duplicatesUncheckedAtApply: true },
      race(() => grant(9, 7n)),
    );
    expect(right).toEqual(["leaseExists", "leaseExists", "none"]);
    expect(wrong).toEqual(["none", "none", "none"]);
  });

  test("a name whose lease has ended can be registered again, and gets another id", () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    const first = cluster.ask(leader, GRANT, register("cart", 2)).ID;
    cluster.run(3_000);
    const second = cluster.ask(leader, GRANT, register("cart", 2)).ID;
    expect(second).not.toBe(first);
    expect(cluster.ask(leader, KEEP, keepAlive(first)).TTL).toBe(0n);
  });
});

test("3: followers hold leases without a deadline", () => {
  const run = () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    const lease = granted(cluster, leader, 2);
    // Only the leader hears of refreshes.
    for (let count = 0; count < 5; count += 1) {
      cluster.send(leader, keepAlive(lease));
      cluster.world.runUntil(cluster.world.nowMs + 700);
    }
    return { leases: cluster.world.servers.map(leasesAt), found: cluster.world.violation?.invariant };
  };
  expect(run()).toEqual({ leases: [1, 1, 1], found: undefined });
  // The simulator compares all servers at the same index of the log.
  expect(withFaults({ followersEndLeases: true }, run).found).toBe("agreement");
});

test("3: a follower that hears nothing for longer than a lease's time to live keeps that lease", () => {
  const cluster = new VirtualCluster();
  const leader = cluster.leader();
  granted(cluster, leader, 2);
  cluster.run(100);
  const [follower] = cluster.followers();
  cluster.isolate(follower!);
  cluster.run(5_000);
  expect([leader, follower!].map(leasesAt)).toEqual([0, 1]);
});

test("4: the leader removes a lease when its expiry is committed, not when its time is up", () => {
  const { right, wrong } = bothWays({ removedBeforeCommitted: true }, () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    granted(cluster, leader, 2);
    cluster.run(1_800);
    cluster.isolate(leader);
    cluster.world.runUntil(cluster.world.nowMs + 600);
    return leasesAt(leader);
  });
  expect(right).toBe(1);
  expect(wrong).toBe(0);
});

describe("5: a leader that may have been deposed answers no refresh (etcd 12528, 15247)", () => {
  test("a leader that is cut off from the others acknowledges none", () => {
    const { right, wrong } = bothWays({ refreshWithoutRound: true }, () => {
      const cluster = new VirtualCluster();
      const leader = cluster.leader();
      const lease = granted(cluster, leader, 9);
      cluster.isolate(leader);
      // By then the servers' promises have ended, but it still leads.
      cluster.run(600);
      const sent = cluster.send(leader, keepAlive(lease));
      cluster.run(5_500);
      return failureOf(sent.outcome);
    });
    expect(right).toBe("noLeader");
    expect(wrong).toBe("none");
  });

  test("a leader that was paused while another was elected lets the new one answer", () => {
    const { right, wrong } = bothWays({ refreshWithoutRound: true }, () => {
      const cluster = new VirtualCluster({ seed: 4, timeoutMs: 20_000 });
      const leader = cluster.leader();
      const lease = granted(cluster, leader, 30);
      const { term } = leader.replica!.status();
      cluster.world.pause(leader, 6_000);
      const sent = cluster.send(leader, keepAlive(lease));
      cluster.run(7_000);
      const { outcome } = sent;
      if (typeof outcome !== "object" || !("header" in outcome)) throw new Error("no answer");
      return Number(outcome.header!.raftTerm) - term;
    });
    expect(right).toBeGreaterThan(0);
    expect(wrong).toBe(0);
  });

  test("concurrent refreshes share one round of heartbeats", () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    const leases = [5, 6, 7].map((ttl) => granted(cluster, leader, ttl));
    const sent = leases.map((lease) => cluster.send(leader, keepAlive(lease)));
    cluster.run(50);
    expect(sent.map(({ outcome }) => (outcome as { TTL?: bigint }).TTL)).toEqual([5n, 6n, 7n]);
  });
});

describe("6: keys attach to a lease", () => {
  test("all keys of a lease are deleted with it in one revision", () => {
    const { right, wrong } = bothWays({ keysLeftBehind: true }, () => {
      const cluster = new VirtualCluster();
      const leader = cluster.leader();
      const lease = granted(cluster, leader, 2);
      for (const key of ["a", "b", "c"]) cluster.ask(leader, PUT, put(key, "1", lease));
      // One key is put twice, and another is detached.
      cluster.ask(leader, PUT, put("a", "2", lease));
      cluster.ask(leader, PUT, put("c", "2"));
      const { responses } = cluster.watch(leader, { key: new Uint8Array(1), rangeEnd: new Uint8Array(1) });
      cluster.run(3_000);
      return responses
        .filter(({ events }) => events.length > 0)
        .map(({ events }) => events.map(({ kv }) => text(kv!.key)).join());
    });
    expect(right).toEqual(["a,b"]);
    expect(wrong).toEqual([]);
  });

  test("a put to a lease that does not exist, and its revocation, are refused", () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    expect(cluster.failure(leader, put("a", "1", 9n))).toBe("leaseNotFound");
    expect(cluster.failure(leader, revoke(9n))).toBe("leaseNotFound");
  });
});

test("7: a new leader begins with every lease refreshed by its full life and an election timeout", () => {
  const { right, wrong } = bothWays({ noExtraLife: true }, () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    granted(cluster, leader, 5);
    cluster.run(4_500);
    cluster.world.crash(leader);
    const next = cluster.leader();
    const electedMs = cluster.world.nowMs;
    while (leasesAt(next) > 0) cluster.run(50);
    return cluster.world.nowMs - electedMs;
  });
  expect(right).toBeGreaterThan(5_500);
  expect(right).toBeLessThan(6_500);
  expect(wrong).toBeLessThan(500);
});

test("8: a refresh goes through any server, and the lease lives as long as it is refreshed", () => {
  const cluster = new VirtualCluster();
  cluster.leader();
  const lease = granted(cluster, cluster.world.servers[0]!, 2);
  for (let count = 0; count < 9; count += 1) {
    cluster.run(700);
    const server = cluster.world.servers[count % 3]!;
    expect(cluster.ask(server, KEEP, keepAlive(lease)).TTL).toBe(2n);
  }
  cluster.run(2_300);
  expect(cluster.ask(cluster.leader(), KEEP, keepAlive(lease)).TTL).toBe(0n);
});

test("9: a watch from an earlier revision gets each change once, in order", () => {
  const cluster = new VirtualCluster();
  const leader = cluster.leader();
  for (const value of ["1", "2", "3"]) cluster.ask(leader, PUT, put("a", value));
  const [follower] = cluster.followers();
  const { responses } = cluster.watch(follower!, { key: new Uint8Array([97]), startRevision: 3n });
  cluster.ask(leader, PUT, put("a", "4"));
  cluster.run(50);
  expect(responses.flatMap(({ events }) => events.map(({ kv }) => text(kv!.value)))).toEqual(["2", "3", "4"]);
});

describe("10: with the cluster's own clock, remaining lease times survive changes of leader (etcd 9395, 9888)", () => {
  const leftAfterElection = (refreshed: boolean) => () => {
    const cluster = new VirtualCluster({ clusterTimeMs: 2_000 });
    const leader = cluster.leader();
    const lease = granted(cluster, leader, 60);
    cluster.run(30_000);
    if (refreshed) expect(cluster.ask(leader, KEEP, keepAlive(lease)).TTL).toBe(60n);
    cluster.world.crash(leader);
    return Number(cluster.ask(cluster.leader(), LEFT, timeToLive(lease)).TTL);
  };

  test("a new leader continues with the time in the log", () => {
    const left = leftAfterElection(false)();
    expect(left).toBeGreaterThanOrEqual(29);
    expect(left).toBeLessThanOrEqual(33);
  });

  test("a refresh is acknowledged only when no later leader can undo it", () => {
    const { right, wrong } = bothWays({ oldTimeStays: true }, leftAfterElection(true));
    expect(right).toBeGreaterThanOrEqual(59);
    expect(wrong).toBeLessThan(40);
  });
});

test("a linearizable read through any server sees everything acknowledged before it", () => {
  const cluster = new VirtualCluster({ latencyMs: 20 });
  const leader = cluster.leader();
  for (let count = 0; count < 10; count += 1) {
    cluster.ask(leader, PUT, put("a", `${count}`));
    const server = cluster.world.servers[count % 3]!;
    const { kvs } = cluster.ask(server, RANGE, range("a"));
    expect(text(kvs[0]!.value)).toBe(`${count}`);
  }
});
