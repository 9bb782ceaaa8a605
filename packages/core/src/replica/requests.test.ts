import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { failureOf, VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import {
  compact,
  grant,
  keepAlive,
  put,
  range,
  register,
  remove,
  text,
  timeToLive,
} from "@leasehold/sim/inner/core/world/requests.js";
import { PutRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { type Command, CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { type Faults, withFaults } from "../../../../test/planted/switches.js";
import { bytesOf } from "../state/keys.js";

const PUT = "etcdserverpb.PutResponse";
const RANGE = "etcdserverpb.RangeResponse";
const GRANT = "etcdserverpb.LeaseGrantResponse";
const KEEP = "etcdserverpb.LeaseKeepAliveResponse";
const LEFT = "etcdserverpb.LeaseTimeToLiveResponse";

function bothWays<T>(mistake: Partial<Faults>, body: () => T): { right: T; wrong: T } {
  return { right: body(), wrong: withFaults(mistake, body) };
}

describe("answers to clients", () => {
  test("`no leader` if nothing was proposed; `timed out` if something may have been", () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    cluster.ask(leader, PUT, put("a", "0"));
    cluster.isolate(leader);
    const proposed = cluster.send(leader, put("a", "1"));
    const reading = cluster.send(leader, range("a"));
    cluster.run(3_000);
    const waiting = cluster.send(leader, put("a", "2"));
    const serializable = cluster.ask(leader, RANGE, range("a", { serializable: true }));
    expect(text(serializable.kvs[0]!.value)).toBe("0");
    cluster.run(8_000);
    expect([proposed, reading, waiting].map(({ outcome }) => failureOf(outcome))).toEqual([
      "timeout",
      "noLeader",
      "noLeader",
    ]);
  });

  test("a proposal replaced by another leader's entries is repeated, and applied once", () => {
    const cluster = new VirtualCluster({ timeoutMs: 20_000 });
    const leader = cluster.leader();
    cluster.isolate(leader);
    const displaced = cluster.send(leader, put("a", "old"));
    cluster.run(4_000);
    const next = cluster.leader();
    expect(next).not.toBe(leader);
    cluster.ask(next, PUT, put("a", "new"));
    cluster.heal();
    cluster.run(3_000);
    expect(failureOf(displaced.outcome)).toBe("none");
    const { kvs } = cluster.ask(next, RANGE, range("a"));
    expect(kvs[0]).toMatchObject({ version: 2n });
    expect(text(kvs[0]!.value)).toBe("old");
  });

  test("a proposal to a lost leader goes to the next leader at once, and is applied once", () => {
    const cluster = new VirtualCluster({ timeoutMs: 20_000 });
    const leader = cluster.leader();
    const [follower] = cluster.followers();
    cluster.isolate(leader);
    const sent = cluster.send(follower!, put("a", "1"));
    cluster.run(2_500);
    expect(failureOf(sent.outcome)).toBe("none");
    expect(sent.outcome).toBeDefined();
    cluster.heal();
    cluster.run(2_000);
    expect(cluster.ask(leader, RANGE, range("a")).kvs[0]).toMatchObject({ version: 1n });
  });

  test("a proposal that the failed leader had replicated is found, and not repeated", () => {
    const { right, wrong } = bothWays({ proposedTwice: true }, () => {
      const cluster = new VirtualCluster({ timeoutMs: 20_000, latencyMs: 20 });
      const leader = cluster.leader();
      const [follower] = cluster.followers();
      const { lastIndex } = leader.replica!.status();
      const sent = cluster.send(follower!, put("a", "1"));
      // All logs have the entry, but no server knows that it is committed.
      const isEverywhere = () =>
        cluster.world.servers.every(({ replica }) => replica!.status().lastIndex > lastIndex);
      while (!isEverywhere()) cluster.run(1);
      cluster.isolate(leader);
      cluster.run(3_000);
      expect(failureOf(sent.outcome)).toBe("none");
      return Number(cluster.ask(follower!, RANGE, range("a")).kvs[0]!.version);
    });
    expect(right).toBe(1);
    expect(wrong).toBeGreaterThan(1);
  });

  test("a leader accepts no proposal for an earlier term of its own", () => {
    const { right, wrong } = bothWays({ lateProposalTaken: true }, () => {
      const cluster = new VirtualCluster();
      const leader = cluster.leader();
      const [follower] = cluster.followers();
      const body = { case: "put" as const, value: create(PutRequestSchema, { key: bytesOf("a") }) };
      const command = toBinary(CommandSchema, create(CommandSchema, { proposer: follower!.id, body }));
      const { term } = leader.replica!.status();
      const late = {
        kind: "propose",
        from: follower!.id,
        to: leader.id,
        number: 1,
        term: term - 1,
        life: 0,
        settled: 0,
        again: false,
        command,
      } as const;
      leader.step({ kind: "message", message: late });
      cluster.run(500);
      return cluster.ask(leader, RANGE, range("a")).kvs.length;
    });
    expect({ right, wrong }).toEqual({ right: 0, wrong: 1 });
  });

  /** The outcome of a server's proposal to the leader. */
  const outcomeOf = (from: "member" | "stranger", inName: "member" | "stranger" | "nobody") => {
    const cluster = new VirtualCluster();
    const troubles: string[] = [];
    cluster.world.trouble = (_server, text) => void troubles.push(text);
    const leader = cluster.leader();
    const [follower] = cluster.followers();
    const ids = { member: follower!.id, stranger: 99n, nobody: 0n };
    const body = { case: "put" as const, value: create(PutRequestSchema, { key: bytesOf("a") }) };
    const command = toBinary(CommandSchema, create(CommandSchema, { proposer: ids[inName], body }));
    const { term } = leader.replica!.status();
    const once = { life: 0, settled: 0, again: false };
    const head = { from: ids[from], to: leader.id, number: 1, term, ...once };
    leader.step({ kind: "message", message: { kind: "propose", ...head, command } });
    cluster.run(500);
    return { puts: cluster.ask(leader, RANGE, range("a")).kvs.length, troubles };
  };

  test("a server that is not a member can propose nothing", () => {
    expect(outcomeOf("member", "member")).toEqual({ puts: 1, troubles: [] });
    const { right, wrong } = bothWays({ strangersTaken: true }, () => outcomeOf("stranger", "stranger").puts);
    expect({ right, wrong }).toEqual({ right: 0, wrong: 1 });
  });

  test("a member can propose only in its own name, and not in the core's", () => {
    for (const name of ["stranger", "nobody"] as const) {
      const { right, wrong } = bothWays({ proposedForOthers: true }, () => outcomeOf("member", name));
      expect([right.puts, wrong.puts]).toEqual([0, 1]);
      expect(right.troubles).toEqual([expect.stringContaining("proposes in another server's name")]);
    }
  });

  test("an undecodable command or an invalid change from a member stops no server", () => {
    const cluster = new VirtualCluster();
    const troubles: string[] = [];
    cluster.world.trouble = (_server, text) => void troubles.push(text);
    const leader = cluster.leader();
    const [follower] = cluster.followers();
    const from = follower!.id;
    const { term } = leader.replica!.status();
    const ofSender = toBinary(CommandSchema, create(CommandSchema, { proposer: from }));
    const unreadable = Buffer.concat([ofSender, Uint8Array.of(0x1a, 0x02, 0x0a, 0x7f)]);
    const change = { case: "memberChange" as const, value: { member: 99n, peerUrls: ["http://a:1"] } };
    const unchanged = toBinary(CommandSchema, create(CommandSchema, { proposer: from, body: change }));
    const head = { from, to: leader.id, number: 1, term, life: 0, settled: 0, again: false };
    leader.step({ kind: "message", message: { kind: "propose", ...head, command: unreadable } });
    leader.step({ kind: "message", message: { kind: "propose-change", ...head, command: unreadable } });
    leader.step({ kind: "message", message: { kind: "propose", ...head, command: unchanged } });
    cluster.run(500);
    expect(troubles).toHaveLength(3);
    expect(cluster.ask(leader, PUT, put("a", "1")).header?.revision).toBe(2n);
    expect(leader.replica!.status().membership.voters).not.toContain(99n);
  });

  test("a late refusal does not affect a proposal repeated in a later term", () => {
    let last = 0n;
    const applied = (_applied: unknown, { request }: Command) => (last = request);
    const cluster = new VirtualCluster({}, [{ applied }]);
    const leader = cluster.leader();
    const [follower] = cluster.followers();
    cluster.ask(follower!, PUT, put("a", "1"));
    cluster.isolate(leader);
    const sent = cluster.send(follower!, put("a", "2"));
    cluster.run(5);
    const { term } = follower!.replica!.status();
    const refused = {
      kind: "leader-refusal",
      from: leader.id,
      to: follower!.id,
      number: Number(last) + 1,
    } as const;
    const refuse = (ofTerm: number) => {
      const message = { ...refused, term: ofTerm, failure: "tooManyRequests" } as const;
      follower!.step({ kind: "message", message });
      cluster.run(5);
    };
    refuse(term - 1);
    expect(sent.outcome).toBeUndefined();
    refuse(term);
    expect(failureOf(sent.outcome)).toBe("tooManyRequests");
  });

  test("bad requests are refused without the log", () => {
    const cluster = new VirtualCluster({ limits: { requestBytesMax: 1_000 } });
    const leader = cluster.leader();
    const before = leader.replica!.status().lastIndex;
    expect(cluster.failure(leader, put("", "1"))).toBe("keyNotProvided");
    expect(cluster.failure(leader, remove(""))).toBe("keyNotProvided");
    expect(cluster.failure(leader, put("a", "x".repeat(1_000)))).toBe("requestTooLarge");
    expect(cluster.failure(leader, range(""))).toBe("keyNotProvided");
    expect(cluster.failure(leader, register("", 9))).toBe("leaseNameMissing");
    expect(cluster.failure(leader, grant(9_000_000_001))).toBe("leaseTtlTooLarge");
    expect(cluster.failure(leader, range("a", { revision: 99n }))).toBe("futureRevision");
    expect(leader.replica!.status().lastIndex).toBe(before);
    expect(cluster.failure(leader, compact(99n))).toBe("futureRevision");
  });

  test("requests that are too many at once are refused, and none of the refused is applied", () => {
    const cluster = new VirtualCluster({ limits: { requestsMax: 3 } });
    const leader = cluster.leader();
    cluster.isolate(leader);
    const sent = ["1", "2", "3", "4"].map((value) => cluster.send(leader, put("a", value)));
    cluster.run(20);
    const refused = sent.filter(({ outcome }) => failureOf(outcome) === "tooManyRequests");
    expect(refused).toHaveLength(1);
    cluster.heal();
    cluster.run(1_000);
    expect(cluster.ask(leader, RANGE, range("a")).kvs[0]!.version).toBe(3n);
  });

  test("a restarted server does not take an older command's answer for its own", () => {
    const cluster = new VirtualCluster({ servers: 1 });
    const server = cluster.leader();
    cluster.ask(server, PUT, put("a", "1"));
    cluster.world.crash(server);
    cluster.world.start(server);
    const sent = cluster.send(server, put("a", "2"));
    cluster.run(3_000);
    expect(failureOf(sent.outcome)).toBe("none");
    expect((sent.outcome as { header: { revision: bigint } }).header.revision).toBe(3n);
  });
});

describe("leases", () => {
  test("the minimum time to live is ⌈1.5 × election timeout⌉; for id 0 the server chooses", () => {
    const cluster = new VirtualCluster({ electionTicks: 15 });
    const lease = cluster.ask(cluster.leader(), GRANT, grant(-3));
    expect(lease.TTL).toBe(3n);
    expect(lease.ID).toBeGreaterThan(0n);
    expect(lease.ID).toBeLessThan(2n ** 63n);
  });

  test("time to live reports the time left, and -1 for a missing lease", () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    const { ID } = cluster.ask(leader, GRANT, grant(10));
    cluster.ask(leader, PUT, put("b", "1", ID));
    cluster.run(3_500);
    const [follower] = cluster.followers();
    const left = cluster.ask(follower!, LEFT, timeToLive(ID, true));
    expect(left).toMatchObject({ TTL: 6n, grantedTTL: 10n });
    expect(left.keys.map((key) => text(key))).toEqual(["b"]);
    expect(cluster.ask(follower!, LEFT, timeToLive(99n))).toMatchObject({ TTL: -1n, grantedTTL: 0n });
  });

  test("a refresh that races the expiry gets 0 once the end is in the log (etcd 14758, 21389)", () => {
    const { right, wrong } = bothWays({ refreshAfterEndProposed: true }, () => {
      const cluster = new VirtualCluster({ servers: 1, writeMs: 1 });
      const leader = cluster.leader();
      const { ID } = cluster.ask(leader, GRANT, grant(2));
      cluster.run(1_500);
      // From here on the disk blocks.
      Object.assign(cluster.world.plan, { writeMs: 100_000 });
      cluster.run(800);
      return Number(cluster.ask(leader, KEEP, keepAlive(ID)).TTL);
    });
    expect(right).toBe(0);
    expect(wrong).toBe(2);
  });

  test("a refresh right after the grant never finds the lease missing (etcd 6978, 13675)", () => {
    const { right, wrong } = bothWays({ refreshBeforeApplied: true }, () => {
      const cluster = new VirtualCluster({ servers: 1, raftLimits: { committedEntriesMax: 1 } });
      const leader = cluster.leader();
      const { ID } = cluster.ask(leader, GRANT, grant(9));
      // The server leads again, and applies its log one entry at a time.
      cluster.world.crash(leader);
      cluster.world.start(leader);
      return Number(cluster.ask(leader, KEEP, keepAlive(ID)).TTL);
    });
    expect(right).toBe(9);
    expect(wrong).toBe(0);
    const cluster = new VirtualCluster({ latencyMs: 20 });
    cluster.leader();
    for (const server of cluster.world.servers)
      for (const other of cluster.world.servers) {
        const { ID } = cluster.ask(server, GRANT, grant(9));
        expect(cluster.ask(other, KEEP, keepAlive(ID)).TTL).toBe(9n);
      }
  });

  test("leases end in bounded batches, and other requests are answered meanwhile (etcd 9360)", () => {
    const { right, wrong } = bothWays({ endsUnbounded: true }, () => {
      const batches: number[] = [];
      const applied = (_applied: unknown, { body }: Command) => {
        if (body.case === "leaseExpire") batches.push(body.value.ids.length);
      };
      const cluster = new VirtualCluster({ limits: { leasesPerBatch: 10 } }, [{ applied }]);
      const leader = cluster.leader();
      for (let count = 0; count < 35; count += 1) cluster.send(leader, grant(2));
      cluster.run(3_000);
      expect(failureOf(cluster.outcome(leader, put("a", "1")))).toBe("none");
      expect(leader.replica!.status().leases).toBe(0);
      return batches;
    });
    expect(right.reduce((sum, count) => sum + count)).toBe(35);
    expect(Math.max(...right)).toBe(10);
    expect(Math.max(...wrong)).toBeGreaterThan(10);
  });

  test("an abandoned refresh keeps no lease alive (etcd 21638)", () => {
    const { right, wrong } = bothWays({ staleRefresh: true }, () => {
      const cluster = new VirtualCluster({ timeoutMs: 200 });
      const leader = cluster.leader();
      const { ID } = cluster.ask(leader, GRANT, grant(3));
      cluster.run(1_450);
      cluster.isolate(leader);
      // By then it no longer leads by its clock.
      cluster.run(550);
      const late = cluster.send(leader, keepAlive(ID));
      cluster.run(300);
      cluster.heal();
      expect(failureOf(late.outcome)).toBe("timeout");
      cluster.run(1_500);
      return leader.replica!.status().leases;
    });
    expect(right).toBe(0);
    expect(wrong).toBe(1);
  });

  test("an end that could not be proposed is proposed again (etcd 10686)", () => {
    const { right, wrong } = bothWays({ endForgotten: true }, () => {
      const cluster = new VirtualCluster();
      const leader = cluster.leader();
      cluster.ask(leader, GRANT, grant(2));
      cluster.run(1_600);
      // The leader transfers leadership to a server that is cut off, so it proposes nothing for an election
      // timeout.
      const [follower] = cluster.followers();
      cluster.isolate(follower!);
      leader.step({ kind: "transfer", to: follower!.id });
      cluster.run(3_000);
      expect(leader.leads).toBe(true);
      return leader.replica!.status().leases;
    });
    expect(right).toBe(0);
    expect(wrong).toBe(1);
  });
});

test("a server that is far behind gets a snapshot with leases, and continues from there", () => {
  const limits = { snapshotEntries: 10, keepEntries: 2 };
  const cluster = new VirtualCluster({ limits });
  const leader = cluster.leader();
  const [behind] = cluster.followers();
  cluster.isolate(behind!);
  const { ID } = cluster.ask(leader, GRANT, grant(60));
  for (let count = 0; count < 40; count += 1) cluster.ask(leader, PUT, put(`k${count}`, "1", ID));
  cluster.heal();
  cluster.run(2_000);
  const { keys, leases, revision, snapshotIndex } = behind!.replica!.status();
  expect({ keys, leases, revision }).toEqual({ keys: 40, leases: 1, revision: 41 });
  expect(snapshotIndex).toBeGreaterThan(20);
  cluster.world.crash(behind!);
  cluster.world.start(behind!);
  cluster.run(1_000);
  expect(behind!.replica!.status().keys).toBe(40);
  expect(cluster.ask(behind!, RANGE, range("k7")).kvs[0]).toMatchObject({ lease: ID });
});
