import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, test } from "vitest";
import { failureOf, VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { withFaults } from "../../../../test/planted/switches.js";
import { auth, bytes, put, range, text, txn } from "@leasehold/sim/inner/core/world/requests.js";
import type { SimServer } from "@leasehold/sim/inner/core/world/server.js";
import { Permission_Type as Type } from "leasehold/etcd/gen/etcd/authpb_pb.js";
import { MemberAddRequestSchema, MemberListRequestSchema } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import type { ReplicaLimits } from "./options.js";
import type { ClientRequest, Credentials } from "./types.js";

const root: Credentials = { kind: "user", user: "root" };
const ann: Credentials = { kind: "user", user: "ann" };
const secret = bytes("secret");
const mine = { key: bytes("a/"), rangeEnd: bytes("a0") };
const enable = auth({ case: "authEnable", value: {} });
const grantRole = auth({ case: "userGrantRole", value: { user: "ann", role: "some" } });
const revokeRole = auth({ case: "userRevokeRole", value: { name: "ann", role: "some" } });
const success = [
  { request: { case: "requestRange" as const, value: { key: bytes("a/1"), serializable: true } } },
];

/** Requests that a server can answer without a leader. */
const local: readonly ClientRequest[] = [
  range("a/1", { serializable: true }),
  txn({ success }),
  { kind: "freeze", request: {} },
];
const members: ClientRequest = { kind: "memberList", request: create(MemberListRequestSchema) };

let cluster: VirtualCluster;
beforeEach(() => begin());

/** Users and roles exist, but authentication is not enabled yet. */
function begin(servers = 3, limits: Partial<ReplicaLimits> = {}): void {
  cluster = new VirtualCluster({ servers, limits: { tokenTtlMs: 20_000, ...limits } });
  change(
    put("a/1", "hidden"),
    auth({ case: "userAdd", value: { name: "root", secret } }),
    auth({ case: "userGrantRole", value: { user: "root", role: "root" } }),
    auth({ case: "userAdd", value: { name: "ann", secret } }),
    auth({ case: "roleAdd", value: { name: "some" } }),
    auth({
      case: "roleGrantPermission",
      value: { name: "some", perm: { ...mine, permType: Type.READWRITE } },
    }),
    grantRole,
  );
}

function change(...requests: readonly ClientRequest[]): void {
  for (const request of requests) expect(cluster.failure(cluster.leader(), request, root)).toBe("none");
}

function restart(...servers: readonly SimServer[]): void {
  for (const server of servers) cluster.world.crash(server);
  for (const server of servers) cluster.world.start(server);
}

/** The answers to all of these, requested at the same moment, and the events of a watch from revision 1. */
function asked(server: SimServer, who: Credentials | undefined, waitMs: number) {
  const sent = local.map((request) => cluster.send(server, request, who));
  const watch = cluster.watch(server, { ...mine, startRevision: 1n }, who);
  cluster.run(waitMs);
  watch.close();
  const events = watch.responses.flatMap(({ events }) => events.map(({ kv }) => text(kv!.value)));
  return { answers: sent.map(({ outcome }) => failureOf(outcome)), events };
}

/** A token for ann. */
function authenticated(): { token: string } {
  const found = cluster.outcome(cluster.leader(), { kind: "secret", request: { name: "ann" } });
  const { revision } = found as { revision: bigint };
  const value = { user: "ann", token: "t", revision };
  return cluster.outcome(cluster.leader(), auth({ case: "authenticate", value })) as { token: string };
}

const refused = (failure: string) => ({ answers: local.map(() => failure), events: [] });

describe("a restarted server", () => {
  test("shows nothing under past rights while it has no leader", () => {
    const run = () => {
      begin();
      const [one] = cluster.followers();
      change(enable);
      for (const server of cluster.world.servers) cluster.world.crash(server);
      cluster.world.start(one!);
      return asked(one!, undefined, 8_000);
    };
    expect(run()).toEqual(refused("noLeader"));
    expect(withFaults({ readsByRightsOfThePast: true }, run).answers).toEqual(local.map(() => "none"));
    expect(withFaults({ watchesByRightsOfThePast: true }, run).events).toEqual(["hidden"]);
  });

  test.each([1, 3])(
    "of %s shows nothing under past rights at first, and refuses once it has heard of a leader",
    (servers) => {
      begin(servers);
      change(enable);
      restart(...cluster.world.servers);
      for (const server of cluster.world.servers)
        expect(asked(server, undefined, 4_000)).toEqual(refused("userNameEmpty"));
    },
  );

  test("in a running core refuses access that was withdrawn while it was away", () => {
    change(enable);
    const [away] = cluster.followers();
    cluster.world.crash(away!);
    change(revokeRole);
    cluster.world.start(away!);
    expect(asked(away!, ann, 1_000)).toEqual(refused("permissionDenied"));
  });

  test("refuses while it applies many entries again", () => {
    begin(1, { unitsPerTurn: 1 });
    change(...Array.from({ length: 50 }, (_, count) => put(`k${count}`, "x")), enable);
    change(...Array.from({ length: 5 }, (_, count) => put(`l${count}`, "x")));
    const [only] = cluster.world.servers;
    restart(only!);
    expect(asked(only!, undefined, 4_000)).toEqual(refused("userNameEmpty"));
  });

  test("refuses as a learner, too", () => {
    cluster = new VirtualCluster({ membershipEveryMs: Infinity });
    cluster.leader();
    cluster.run(3_000);
    change(
      put("a/1", "hidden"),
      auth({ case: "userAdd", value: { name: "root", secret } }),
      auth({ case: "userGrantRole", value: { user: "root", role: "root" } }),
      {
        kind: "memberAdd",
        request: create(MemberAddRequestSchema, { peerURLs: ["http://x:1"], isLearner: true }),
      },
    );
    const learner = cluster.world.reference.state.members.all.find((each) => each.learner)!;
    cluster.world.join(learner.id);
    cluster.run(3_000);
    const server = cluster.world.servers.at(-1)!;
    expect(cluster.failure(server, local[0]!)).toBe("none");
    cluster.world.crash(server);
    change(enable);
    cluster.world.start(server);
    const sent = local.map((request) => cluster.send(server, request));
    cluster.run(2_000);
    expect(sent.map(({ outcome }) => failureOf(outcome))).toEqual(local.map(() => "userNameEmpty"));
  });

  test("answers without a majority once it has heard of a leader, and at once", () => {
    const [one] = cluster.followers();
    restart(one!);
    const sent = cluster.send(one!, local[0]!);
    cluster.run(250);
    expect(sent.outcome).toMatchObject({ $typeName: "etcdserverpb.RangeResponse" });
    cluster.isolate(one!);
    cluster.run(5_000);
    const { answers, events } = asked(one!, undefined, 100);
    expect(answers).toEqual(local.map(() => "none"));
    expect(events).toEqual(["hidden"]);
  });

  test("asks the leader before any client connects", () => {
    const [one] = cluster.followers();
    restart(one!);
    cluster.run(250);
    cluster.isolate(one!);
    expect(cluster.failure(one!, local[0]!)).toBe("none");
  });

  test("lists the members, with or without a leader", () => {
    change(enable);
    const [one] = cluster.followers();
    for (const server of cluster.world.servers) cluster.world.crash(server);
    cluster.world.start(one!);
    // Even for tokens, of which the server knows none yet.
    const sent = [undefined, ann, { kind: "token", token: "t.9" } as const].map((who) =>
      cluster.send(one!, members, who),
    );
    cluster.run(100);
    for (const { outcome } of sent)
      expect(outcome).toMatchObject({ $typeName: "etcdserverpb.MemberListResponse" });
  });

  test("does not accept tokens that were issued and expired while it was away", () => {
    const run = () => {
      begin(3, { tokenTtlMs: 3_000 });
      change(enable);
      const [away] = cluster.followers();
      cluster.world.crash(away!);
      const { token } = authenticated();
      const leader = cluster.leader();
      cluster.run(6_000);
      const who: Credentials = { kind: "token", token };
      expect(cluster.failure(leader, put("a/1", "x"), who)).toBe("invalidAuthToken");
      cluster.world.start(away!);
      cluster.run(1_000);
      return cluster.failure(away!, range("a/1", { serializable: true }), who);
    };
    expect(run()).toBe("invalidAuthToken");
    expect(withFaults({ tokensOfThePast: true }, run)).toBe("none");
  });
});
