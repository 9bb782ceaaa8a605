import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import type { SimServer } from "@leasehold/sim/inner/core/world/server.js";
import { type Faults, withFaults } from "../../../../test/planted/switches.js";
import { failureOf, type Sent, VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import {
  MemberAddRequestSchema,
  MemberListRequestSchema,
  MemberPromoteRequestSchema,
  MemberRemoveRequestSchema,
  MemberUpdateRequestSchema,
} from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { WatchCreateRequestSchema, WatchRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { founding as newLog } from "../raft/options.js";
import type { CoreMember } from "../state/members.js";
import { CoreState } from "../state/state.js";
import type { CommandBody } from "./context.js";
import { Replica } from "./replica.js";
import type { Roll } from "./roll.js";
import type { ClientRequest, PeerMessage } from "./types.js";

const add = (url: string, isLearner = false): ClientRequest => ({
  kind: "memberAdd",
  request: create(MemberAddRequestSchema, { peerURLs: [url], isLearner }),
});
const remove = (ID: bigint): ClientRequest => ({
  kind: "memberRemove",
  request: create(MemberRemoveRequestSchema, { ID }),
});
const promote = (ID: bigint): ClientRequest => ({
  kind: "memberPromote",
  request: create(MemberPromoteRequestSchema, { ID }),
});
const list: ClientRequest = {
  kind: "memberList",
  request: create(MemberListRequestSchema, { linearizable: true }),
};

function bothWays<T>(mistake: Partial<Faults>, body: () => T): { right: T; wrong: T } {
  return { right: body(), wrong: withFaults(mistake, body) };
}

/** A cluster whose servers know each other's names. */
function started(): VirtualCluster {
  const cluster = new VirtualCluster({ membershipEveryMs: Infinity });
  cluster.leader();
  cluster.run(3_000);
  return cluster;
}

/** Whether the stream of a new watch ends, so that its client tries another server. */
function watchEnds(cluster: VirtualCluster, server: SimServer): boolean {
  let isLost = false;
  const watch = cluster.world.watch(
    server,
    () => undefined,
    () => (isLost = true),
  )!;
  const value = create(WatchCreateRequestSchema, { key: new Uint8Array([1]) });
  watch.send(create(WatchRequestSchema, { requestUnion: { case: "createRequest", value } }));
  cluster.run(100);
  watch.close();
  return isLost;
}

test("an added voter delays no commit before it has started, and votes once it has caught up", () => {
  const cluster = started();
  const [asked] = cluster.followers();
  const { member } = cluster.ask(asked!, "etcdserverpb.MemberAddResponse", add("http://x:1"));
  expect(member).toMatchObject({ name: "", isLearner: false });
  cluster.run(5_000);
  const votersOf = () => cluster.leader().replica!.status().membership.voters;
  expect(votersOf()).toHaveLength(3);
  cluster.world.join(member!.ID);
  cluster.run(5_000);
  expect(votersOf()).toContain(member!.ID);
  const { members } = cluster.ask(asked!, "etcdserverpb.MemberListResponse", list);
  expect(members.map(({ name }) => name)).toContain(`s${member!.ID}`);
});

test("a learner votes after its promotion when it has caught up, and not before it has started", () => {
  const cluster = started();
  const leader = cluster.leader();
  const { member } = cluster.ask(leader, "etcdserverpb.MemberAddResponse", add("http://x:1", true));
  expect(cluster.failure(leader, add("http://y:1", true))).toBe("tooManyLearners");
  expect(cluster.failure(leader, promote(member!.ID))).toBe("learnerNotReady");
  expect(cluster.failure(leader, promote(leader.id))).toBe("notLearner");
  cluster.world.join(member!.ID);
  cluster.run(5_000);
  const learner = cluster.world.servers.at(-1)!;
  expect(cluster.failure(learner, list)).toBe("notForLearner");
  expect(watchEnds(cluster, learner)).toBe(true);
  cluster.ask(leader, "etcdserverpb.MemberPromoteResponse", promote(member!.ID));
  cluster.run(1_000);
  expect(cluster.failure(learner, list)).toBe("none");
  expect(watchEnds(cluster, learner)).toBe(false);
});

test("a server that is down may be removed, but not one that the others need", () => {
  const cluster = started();
  const leader = cluster.leader();
  const [down, up] = cluster.followers();
  cluster.world.crash(down!);
  cluster.run(3_000);
  expect(cluster.failure(leader, remove(up!.id))).toBe("unhealthy");
  expect(cluster.failure(leader, add("http://x:1"))).toBe("unhealthy");
  cluster.ask(leader, "etcdserverpb.MemberRemoveResponse", remove(down!.id));
  expect(cluster.failure(leader, remove(down!.id))).toBe("memberNotFound");
  expect(leader.replica!.status().membership.voters).toHaveLength(2);
});

test("addresses may change while a server is down, its own and those of others", () => {
  const cluster = started();
  const leader = cluster.leader();
  const [down, up] = cluster.followers();
  cluster.world.crash(down!);
  cluster.run(3_000);
  const update = (ID: bigint, url: string): ClientRequest => ({
    kind: "memberUpdate",
    request: create(MemberUpdateRequestSchema, { ID, peerURLs: [url] }),
  });
  expect(cluster.failure(leader, update(up!.id, "http://x:1"))).toBe("none");
  expect(cluster.failure(leader, update(down!.id, "http://x:1"))).toBe("peerUrlExists");
  expect(cluster.failure(leader, update(down!.id, "http://x:2"))).toBe("none");
});

test("a starting server uses the address that its log has for it, committed or not", () => {
  const founding = [1n, 2n].map((id): CoreMember => ({
    id,
    name: `s${id}`,
    peerUrls: [`http://s${id}:1`],
    clientUrls: [],
    learner: false,
    disk: 0n,
    joining: false,
  }));
  const entry = (index: number, body: CommandBody) => ({
    index,
    term: 1,
    kind: "normal" as const,
    data: toBinary(CommandSchema, create(CommandSchema, { body })),
  });
  const now = { monotonicMs: 1, wallMs: 1 };
  const update = { member: 2n, peerUrls: ["http://moved:1"] };
  const members = founding.map((each) => ({ ...each, peerUrls: [...each.peerUrls], clientUrls: [] }));
  const entries = [
    entry(2, { case: "bootstrap", value: { cluster: 7n, members } }),
    entry(3, { case: "memberUpdate", value: update }),
  ];
  const rollWith = (commit: number, later?: Extract<PeerMessage, { kind: "append" }>) => {
    const recovered = { ...newLog([1n, 2n]), hardState: { term: 1, votedFor: 0n, commit }, entries };
    const ports = { random: { next: () => 0.5 }, checksum: () => 0, tickMs: 100 };
    const state = new CoreState();
    const replica = new Replica({ id: 2n, cluster: 7n, recovered, state, founding, ...ports });
    let roll: Roll | undefined;
    const takeAll = () => {
      for (let effects = replica.take(); effects !== undefined; effects = replica.take()) {
        roll = effects.roll ?? roll;
        if (effects.persist !== undefined)
          replica.step({ kind: "persisted", sequence: effects.persist.sequence }, now);
      }
    };
    takeAll();
    if (later !== undefined) replica.step({ kind: "message", message: later }, now);
    takeAll();
    return roll?.members.map(({ peerUrls }) => peerUrls);
  };
  expect(rollWith(2)).toEqual([["http://s1:1"], ["http://s2:1", "http://moved:1"]]);
  expect(rollWith(3)).toEqual([["http://s1:1"], ["http://moved:1"]]);
  // A later leader has another entry at that index: the move was never committed.
  const other = { index: 3, term: 2, kind: "normal" as const, data: new Uint8Array() };
  const replaced = { kind: "append", from: 1n, to: 2n, term: 2, previousIndex: 2, previousTerm: 1 } as const;
  expect(rollWith(2, { ...replaced, entries: [other], commit: 3 })).toEqual([
    ["http://s1:1"],
    ["http://s2:1"],
  ]);
});

test("a server that has caught up but has no vote yet does not make up for one that is down", () => {
  const cluster = started();
  const leader = cluster.leader();
  const [down, up] = cluster.followers();
  const { member } = cluster.ask(leader, "etcdserverpb.MemberAddResponse", add("http://x:1"));
  cluster.world.crash(down!);
  cluster.run(3_000);
  cluster.world.join(member!.ID);
  const statusOf = () => leader.replica!.status();
  const hears = () =>
    statusOf().followers.some(({ id, silentTicks }) => id === member!.ID && silentTicks === 0);
  const votes = () => statusOf().membership.voters.includes(member!.ID);
  const sent: Sent[] = [];
  for (let waitedMs = 0; !votes() && waitedMs < 5_000; waitedMs += 1) {
    if (hears()) sent.push(cluster.send(leader, remove(up!.id)));
    cluster.run(1);
  }
  expect(failureOf(sent[0]!.outcome)).toBe("unhealthy");
  // Otherwise there would be two voters, one of them down, and nothing could be committed.
  expect(votes()).toBe(true);
});

test("a removed leader is followed by another one", () => {
  const cluster = started();
  const leader = cluster.leader();
  cluster.ask(leader, "etcdserverpb.MemberRemoveResponse", remove(leader.id));
  cluster.run(5_000);
  const next = cluster.world.members().find((server) => server.leads)!;
  expect(next.id).not.toBe(leader.id);
  expect(leader.leads).toBe(false);
});

test("an address belongs to one member only, even if several requests want it at once", () => {
  const cluster = started();
  const [one, other] = cluster.followers();
  const sent = [cluster.send(one!, add("http://x:1")), cluster.send(other!, add("http://x:1"))];
  cluster.run(3_000);
  const failures = sent.map(({ outcome }) => (outcome instanceof Error ? outcome.message : "done")).sort();
  expect(failures).toEqual(["done", "etcdserver: Peer URLs already exists"]);
  const update = create(MemberUpdateRequestSchema, { ID: one!.id, peerURLs: ["http://x:1"] });
  expect(cluster.failure(one!, { kind: "memberUpdate", request: update })).toBe("peerUrlExists");
});

test("the last server cannot be removed, and addresses must not be empty", () => {
  const cluster = new VirtualCluster({ membershipEveryMs: Infinity, servers: 1 });
  const leader = cluster.leader();
  expect(cluster.failure(leader, remove(leader.id))).toBe("notEnoughStarted");
  for (const url of ["", "x:1", "http://x", "ftp://x:1", "http://x:1/path"])
    expect(cluster.failure(leader, add(url))).toBe("peerUrlsInvalid");
});

describe("the cluster's version", () => {
  const versions = ({ world }: VirtualCluster) =>
    world.servers.flatMap(({ replica }) => (replica === undefined ? [] : [replica.status().version]));

  /** All servers start with the previous version. */
  function former(): VirtualCluster {
    const cluster = new VirtualCluster({ membershipEveryMs: Infinity, introduced: true, upgrades: true });
    cluster.leader();
    cluster.run(3_000);
    return cluster;
  }

  function restart(cluster: VirtualCluster, server: SimServer, version: number): void {
    server.nextVersion = version;
    cluster.world.crash(server);
    cluster.world.start(server);
    cluster.leader();
    cluster.run(5_000);
  }

  test("is raised only when the last member supports it; servers may be downgraded until then", () => {
    const cluster = former();
    const [first, second, third] = cluster.world.servers as [SimServer, SimServer, SimServer];
    expect(versions(cluster)).toEqual([7, 7, 7]);
    restart(cluster, first, 8);
    restart(cluster, second, 8);
    expect(versions(cluster)).toEqual([7, 7, 7]);
    restart(cluster, second, 7);
    restart(cluster, third, 8);
    expect(versions(cluster)).toEqual([7, 7, 7]);
    restart(cluster, second, 8);
    expect(versions(cluster)).toEqual([8, 8, 8]);
  });

  test("is not raised while one server has the previous version or is away: it could not come back", () => {
    const ends = (mistake: "raisedTooEarly" | "raisedWithoutOne") =>
      bothWays({ [mistake]: true }, () => {
        const cluster = former();
        const [first, second, third] = cluster.world.servers as [SimServer, SimServer, SimServer];
        const order = mistake === "raisedTooEarly" ? [first, second] : [first, second, third];
        try {
          if (mistake === "raisedWithoutOne") {
            for (const server of order) server.nextVersion = 8;
            for (const server of [first, second]) restart(cluster, server, 8);
            third.nextVersion = 7;
            cluster.world.crash(third);
            for (const server of [first, second])
              server.step({ kind: "peer-version", member: third.id, version: 8 });
            cluster.run(5_000);
            cluster.world.start(third);
          } else for (const server of order) restart(cluster, server, 8);
          cluster.run(10_000);
          return Math.max(...versions(cluster));
        } catch (error) {
          return (error as Error).message;
        }
      });
    expect(ends("raisedTooEarly")).toEqual({ right: 7, wrong: expect.stringMatching("speaks version 8") });
    expect(ends("raisedWithoutOne")).toEqual({ right: 7, wrong: expect.stringMatching("speaks version 8") });
  });
});
