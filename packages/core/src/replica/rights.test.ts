import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, test } from "vitest";
import { failureOf, VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { withFaults } from "../../../../test/planted/switches.js";
import {
  auth,
  bytes,
  compact,
  grant,
  keepAlive,
  put,
  range,
  text,
  timeToLive,
  txn,
} from "@leasehold/sim/inner/core/world/requests.js";
import type { SimServer } from "@leasehold/sim/inner/core/world/server.js";
import { Permission_Type as Type } from "leasehold/etcd/gen/etcd/authpb_pb.js";
import { AuthRoleGetRequestSchema, AuthUserGetRequestSchema } from "leasehold/etcd/gen/etcd/auth_pb.js";
import {
  LeaseLeasesRequestSchema,
  WatchRequestSchema,
  type WatchResponse,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { ReplicaLimits } from "./options.js";
import type { ClientRequest, Credentials } from "./types.js";

const asUser = (user: string): Credentials => ({ kind: "user", user });
const root = asUser("root");
const ann = asUser("ann");
const secret = bytes("secret");
const mine = { key: bytes("a/"), rangeEnd: bytes("a0") };
const grantMine = auth({
  case: "roleGrantPermission",
  value: { name: "some", perm: { ...mine, permType: Type.READWRITE } },
});
const revokeMine = auth({ case: "roleRevokePermission", value: { role: "some", ...mine } });

let cluster: VirtualCluster;
let leader: SimServer;

/** Authentication is enabled; ann may read and write all keys below a/. */
function begin(limits: Partial<ReplicaLimits> = {}): void {
  cluster = new VirtualCluster({ limits: { tokenTtlMs: 20_000, ...limits } });
  leader = cluster.leader();
  setUp(cluster, leader);
}

function setUp(cluster: VirtualCluster, leader: SimServer): void {
  for (const request of [
    auth({ case: "userAdd", value: { name: "root", secret } }),
    auth({ case: "userGrantRole", value: { user: "root", role: "root" } }),
    auth({ case: "userAdd", value: { name: "ann", secret } }),
    auth({ case: "roleAdd", value: { name: "some" } }),
    grantMine,
    auth({ case: "userGrantRole", value: { user: "ann", role: "some" } }),
    put("a/1", "seen"),
    put("b", "hidden"),
    grant(60, 7n),
    put("b/leased", "hidden", 7n),
    auth({ case: "authEnable", value: {} }),
  ])
    expect(cluster.failure(leader, request)).toBe("none");
  cluster.run(500);
}

beforeEach(() => begin());

/** Authenticates as a host does after it has verified a password. */
function authenticate(server: SimServer, user = "ann"): Credentials {
  const secretOf = { kind: "secret", request: { name: user } } as const;
  const outcome = cluster.outcome(server, secretOf) as { revision: bigint };
  const value = { user, token: `token-${user}`, revision: outcome.revision };
  const { token } = cluster.ask(
    server,
    "etcdserverpb.AuthenticateResponse",
    auth({ case: "authenticate", value }),
  );
  return { kind: "token", token };
}

test("for an unknown user another user's secret is checked, which takes as long", () => {
  const asked = (name: string) => cluster.outcome(leader, { kind: "secret", request: { name } });
  for (const name of ["nobody", "aaa", "zzz"]) {
    expect(asked(name)).toMatchObject({ isKnown: false, secret });
    expect(asked(name)).toEqual(asked(name));
  }
  expect(asked("ann")).toMatchObject({ isKnown: true, secret });
});

describe("a request without a user, with a wrong token, or without permission is refused", () => {
  const requests: [string, ClientRequest, string][] = [
    ["a read of a hidden key", range("b"), "permissionDenied"],
    ["a read across the edge", range("a/", { rangeEnd: bytes("b") }), "permissionDenied"],
    ["a count across the edge", range("a/", { rangeEnd: bytes("\0"), countOnly: true }), "permissionDenied"],
    ["a serializable read", range("b", { serializable: true }), "permissionDenied"],
    ["a read of the past", range("b", { revision: 3n }), "permissionDenied"],
    [
      "a transaction that only reads",
      txn({ success: [{ request: { case: "requestRange", value: { key: bytes("b") } } }] }),
      "permissionDenied",
    ],
    ["a put", put("b", "x"), "permissionDenied"],
    ["the keys of another's lease", timeToLive(7n, true), "permissionDenied"],
    ["the list of users", { kind: "userList", request: {} as never }, "permissionDenied"],
    ["the list of roles", { kind: "roleList", request: {} as never }, "permissionDenied"],
    [
      "another user",
      { kind: "userGet", request: create(AuthUserGetRequestSchema, { name: "root" }) },
      "permissionDenied",
    ],
    [
      "a role of others",
      { kind: "roleGet", request: create(AuthRoleGetRequestSchema, { role: "root" }) },
      "permissionDenied",
    ],
    ["how rights stand", { kind: "authStatus", request: {} as never }, "permissionDenied"],
    ["everything, at one moment", { kind: "freeze", request: {} }, "permissionDenied"],
    ["another server's removal", { kind: "memberRemove", request: { ID: 1n } as never }, "permissionDenied"],
    ["a role more", auth({ case: "roleAdd", value: { name: "x" } }), "permissionDenied"],
    ["a lease", grant(60, 9n), "none"],
    ["the list of leases", { kind: "leaseLeases", request: create(LeaseLeasesRequestSchema) }, "none"],
    ["what is left of a lease", timeToLive(7n), "none"],
    ["a lease by name", { kind: "registerLease", request: { name: "n", ttlSeconds: 60n } }, "none"],
    ["the lease of a name", { kind: "findLease", request: { name: "n" } }, "none"],
    [
      "one's own roles",
      { kind: "userGet", request: create(AuthUserGetRequestSchema, { name: "ann" }) },
      "none",
    ],
    [
      "one's own role",
      { kind: "roleGet", request: create(AuthRoleGetRequestSchema, { role: "some" }) },
      "none",
    ],
    ["a read of one's own", range("a/", { rangeEnd: bytes("a0") }), "none"],
    ["a put of one's own", put("a/2", "x"), "none"],
  ];
  test("by every server, and a refused request changes nothing", () => {
    for (const server of cluster.world.servers) {
      const before = leader.replica!.status().revision;
      const unknown: Credentials = { kind: "token", token: "made-up.12" };
      for (const [name, request, expected] of requests) {
        const outcomes = [undefined, unknown, asUser("eve"), ann].map((who) =>
          expected === "none" && who === ann ? "none" : cluster.failure(server, request, who),
        );
        expect([name, ...outcomes]).toEqual([
          name,
          "userNameEmpty",
          "invalidAuthToken",
          expect.stringMatching(/permissionDenied|userNotFound/),
          expected,
        ]);
      }
      expect(leader.replica!.status().revision).toBe(before);
    }
  });

  test("every server answers permitted requests", () => {
    for (const server of cluster.world.servers)
      for (const [, request] of requests.filter(([, , expected]) => expected === "none"))
        expect(cluster.failure(server, request, ann)).toMatch(/none|leaseExists|leaseNameTaken/);
  });
});

test("a lease is kept alive without a token: its holder must not lose it while authenticating", () => {
  const answer = cluster.ask(leader, "etcdserverpb.LeaseKeepAliveResponse", keepAlive(7n));
  expect(answer.TTL).toBe(60n);
});

describe("a server that has not caught up", () => {
  const behind = () => {
    const [slow, other] = cluster.followers();
    cluster.isolate(slow!);
    return { slow: slow!, other: other! };
  };

  test("does not refuse requests under rights granted on another server", () => {
    expect(cluster.failure(leader, revokeMine, root)).toBe("none");
    cluster.run(500);
    const run = () => {
      const { slow, other } = behind();
      expect(cluster.failure(other, grantMine, root)).toBe("none");
      cluster.heal();
      const failures = [put("a/1", "x"), range("a/1")].map((request) => cluster.send(slow, request, ann));
      cluster.run(3_000);
      const found = failures.map(({ outcome }) => failureOf(outcome));
      expect(cluster.failure(leader, revokeMine, root)).toBe("none");
      cluster.run(500);
      return found;
    };
    expect(run()).toEqual(["none", "none"]);
    expect(withFaults({ staleRightsRefuse: true }, run)[0]).toBe("permissionDenied");
  });

  test("does not permit requests under rights revoked on another server", () => {
    const { slow, other } = behind();
    expect(cluster.failure(other, revokeMine, root)).toBe("none");
    cluster.heal();
    const sent = [put("a/1", "x"), range("a/1")].map((request) => cluster.send(slow, request, ann));
    cluster.run(3_000);
    expect(sent.map(({ outcome }) => failureOf(outcome))).toEqual([
      expect.stringMatching(/authRevisionOld|permissionDenied/),
      "permissionDenied",
    ]);
  });

  test("does not accept a token that has ended on another server, even for requests without keys", () => {
    const token = authenticate(leader, "root");
    cluster.run(500);
    const { slow, other } = behind();
    const change = auth({ case: "userChangePassword", value: { name: "root", secret: bytes("other") } });
    expect(cluster.failure(other, change, root)).toBe("none");
    cluster.heal();
    const requests = [auth({ case: "roleAdd", value: { name: "taken" } }), compact(3n)];
    const sent = requests.map((request) => cluster.send(slow, request, token));
    cluster.run(3_000);
    const refused = ["invalidAuthToken", "invalidAuthToken"];
    expect(sent.map(({ outcome }) => failureOf(outcome))).toEqual(refused);
  });

  test("accepts a token that another server issued", () => {
    const { slow, other } = behind();
    const token = authenticate(other);
    cluster.heal();
    const sent = [put("a/1", "x"), range("a/1"), range("a/1", { serializable: true })].map((request) =>
      cluster.send(slow, request, token),
    );
    cluster.run(3_000);
    expect(sent.map(({ outcome }) => failureOf(outcome))).toEqual(["none", "none", "none"]);
  });
});

test("a command in flight is refused when applied, if rights are revoked meanwhile", () => {
  const run = () => {
    begin();
    const { lastIndex } = leader.replica!.status();
    const revoked = cluster.send(leader, revokeMine, root);
    // The revocation is in the log, but not applied yet: the put is first checked before it, and applied
    // after it.
    while (leader.replica!.status().lastIndex === lastIndex) cluster.run(1);
    expect(revoked.outcome).toBe(undefined);
    const late = cluster.send(leader, put("a/1", "late"), ann);
    cluster.run(1_000);
    expect(failureOf(revoked.outcome)).toBe("none");
    return failureOf(late.outcome);
  };
  expect(run()).toBe("authRevisionOld");
  expect(withFaults({ rightsUncheckedAtApply: true }, run)).toBe("none");
});

describe("a token", () => {
  test("ends with its user, and a user of the same name does not inherit it", () => {
    const run = () => {
      begin();
      const token = authenticate(leader);
      expect(cluster.failure(leader, put("a/1", "x"), token)).toBe("none");
      for (const request of [
        auth({ case: "userDelete", value: { name: "ann" } }),
        auth({ case: "userAdd", value: { name: "ann", secret } }),
        auth({ case: "userGrantRole", value: { user: "ann", role: "some" } }),
      ])
        expect(cluster.failure(leader, request, root)).toBe("none");
      return cluster.failure(leader, put("a/1", "x"), token);
    };
    expect(run()).toBe("invalidAuthToken");
    expect(withFaults({ tokenOutlivesUser: true }, run)).toBe("none");
  });

  test("ends when its user's password changes, and when authentication is disabled", () => {
    const token = authenticate(leader);
    const change = auth({ case: "userChangePassword", value: { name: "ann", secret: bytes("other") } });
    expect(cluster.failure(leader, change, root)).toBe("none");
    expect(cluster.failure(leader, put("a/1", "x"), token)).toBe("invalidAuthToken");
    const next = authenticate(leader);
    expect(cluster.failure(leader, auth({ case: "authDisable", value: {} }), root)).toBe("none");
    expect(cluster.failure(leader, put("a/1", "x"), next)).toBe("invalidAuthToken");
    expect(cluster.failure(leader, put("b", "x"))).toBe("none");
  });

  test("expires on a server where it was not used for its time to live", () => {
    const token = authenticate(leader);
    const [follower] = cluster.followers();
    for (let used = 0; used < 3; used += 1) {
      cluster.run(14_000);
      expect(cluster.failure(leader, put("a/1", "x"), token)).toBe("none");
    }
    expect(cluster.failure(follower!, put("a/1", "x"), token)).toBe("invalidAuthToken");
    cluster.run(20_001);
    expect(cluster.failure(leader, put("a/1", "x"), token)).toBe("invalidAuthToken");
  });

  test("is unknown after its server's restart, however much of the log is applied again", () => {
    const token = authenticate(leader);
    const [follower] = cluster.followers();
    expect(cluster.failure(follower!, put("a/1", "x"), token)).toBe("none");
    cluster.world.crash(follower!);
    cluster.world.start(follower!);
    cluster.run(2_000);
    expect(cluster.failure(follower!, put("a/1", "x"), token)).toBe("invalidAuthToken");
    expect(cluster.failure(leader, put("a/1", "x"), token)).toBe("none");
  });

  test("is not issued if users have changed since the password was verified", () => {
    const value = { user: "ann", token: "t", revision: 1n };
    expect(cluster.failure(leader, auth({ case: "authenticate", value }))).toBe("authRevisionOld");
  });
});

test("users and roles that take too much room are refused; commands that make room are not", () => {
  begin({ authBytesMax: 20_000 });
  const add = [
    auth({ case: "roleAdd", value: { name: "x".repeat(20_000) } }),
    auth({ case: "roleAdd", value: { name: "x" } }),
    auth({ case: "userAdd", value: { name: "x" } }),
    grantMine,
  ];
  const full = "tooManyRights";
  expect(add.map((each) => cluster.failure(leader, each, root))).toEqual(["none", full, full, full]);
  const remove = auth({ case: "roleDelete", value: { role: "x".repeat(20_000) } });
  expect(cluster.failure(leader, remove, root)).toBe("none");
  expect(add.slice(1).map((each) => cluster.failure(leader, each, root))).toEqual(["none", "none", "none"]);
});

describe("a watch", () => {
  const said = (responses: readonly WatchResponse[]) =>
    responses.flatMap(({ canceled, cancelReason, events }) => [
      ...events.map(({ kv }) => text(kv!.value)),
      ...(canceled ? [cancelReason.replace("rpc error: code = ", "")] : []),
    ]);
  const denied = "PermissionDenied desc = etcdserver: permission denied";

  test("that exceeds the permitted range is refused, also one without an end", () => {
    const rangeEnds = ["b", "\0"];
    for (const rangeEnd of rangeEnds) {
      const { responses } = cluster.watch(leader, { key: bytes("a/"), rangeEnd: bytes(rangeEnd) }, ann);
      cluster.run(100);
      expect(said(responses)).toEqual([denied]);
    }
  });

  test("ends when its user's rights are revoked, and shows nothing later", () => {
    const run = () => {
      begin();
      const { responses } = cluster.watch(leader, mine, ann);
      cluster.run(100);
      expect(cluster.failure(leader, put("a/1", "before"), root)).toBe("none");
      expect(cluster.failure(leader, revokeMine, root)).toBe("none");
      expect(cluster.failure(leader, put("a/1", "after"), root)).toBe("none");
      cluster.run(100);
      return said(responses);
    };
    expect(run()).toEqual(["before", denied]);
    expect(withFaults({ watchOutlivesRights: true }, run)).toEqual(["before", "after"]);
  });

  const replaceAnn = [
    auth({ case: "userDelete", value: { name: "ann" } }),
    auth({ case: "userAdd", value: { name: "ann", secret } }),
    auth({ case: "userGrantRole", value: { user: "ann", role: "some" } }),
  ];

  test.each([
    ["at once", 10_000, { snapshotEntries: 1_000 }],
    ["in a snapshot", 30_000, { snapshotEntries: 4, keepEntries: 1 }],
  ])("ends with its user, also where it is heard %s that another has that name", (_, restMs, limits) => {
    const held = new VirtualCluster({ limits: { ...limits, tokenTtlMs: 20_000 } });
    setUp(held, held.leader());
    const [follower] = held.followers();
    const { responses } = held.watch(follower!, mine, ann);
    held.run(500);
    held.isolate(follower!);
    const leading = held.leader();
    for (const request of replaceAnn) expect(held.failure(leading, request, root)).toBe("none");
    for (let count = 0; count < 20; count += 1)
      expect(held.failure(leading, put("a/1", "others"), root)).toBe("none");
    held.heal();
    held.run(restMs);
    expect(said(responses)).toEqual([denied]);
  });

  test("ends with its user, even if a user of the same name exists before its client reads on", () => {
    begin({ watchResponsesMax: 2 });
    const responses: WatchResponse[] = [];
    let stream = 0;
    leader.enter((host) => {
      stream = host.openWatches("c", (response) => void responses.push(response as WatchResponse));
      const request = create(WatchRequestSchema, { requestUnion: { case: "createRequest", value: mine } });
      host.watch(stream, request, ann);
    });
    for (const request of [
      put("a/1", "before"),
      put("a/1", "missed"),
      auth({ case: "userDelete", value: { name: "ann" } }),
      auth({ case: "userAdd", value: { name: "ann", secret } }),
      auth({ case: "userGrantRole", value: { user: "ann", role: "some" } }),
      put("a/1", "after"),
    ])
      expect(cluster.failure(leader, request, root)).toBe("none");
    expect(said(responses)).toEqual(["before"]);
    leader.enter((host) => host.watchSent(stream, 2));
    cluster.run(1_000);
    expect(said(responses)).toEqual(["before", denied]);
  });

  test("continues when other rights change, without duplicates", () => {
    const { responses } = cluster.watch(leader, mine, ann);
    cluster.run(100);
    for (const value of ["1", "2", "3"]) {
      expect(cluster.failure(leader, put("a/1", value), ann)).toBe("none");
      expect(cluster.failure(leader, auth({ case: "roleAdd", value: { name: value } }), root)).toBe("none");
    }
    cluster.run(100);
    expect(said(responses)).toEqual(["1", "2", "3"]);
  });

  test("of an unauthenticated client ends when authentication is enabled", () => {
    expect(cluster.failure(leader, auth({ case: "authDisable", value: {} }), root)).toBe("none");
    const { responses } = cluster.watch(leader, mine);
    cluster.run(100);
    expect(cluster.failure(leader, auth({ case: "authEnable", value: {} }))).toBe("none");
    cluster.run(100);
    expect(said(responses)).toEqual(["InvalidArgument desc = etcdserver: user name is empty"]);
  });
});
