import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Permission,
  PermissionSchema,
  Permission_Type as Type,
} from "leasehold/etcd/gen/etcd/authpb_pb.js";
import { CommandSchema, UserAddSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { AuthState } from "./auth-state.js";
import { CoreError } from "./errors.js";
import { bytesOf, type KeyRange, rangeOf } from "./keys.js";
import { frozen, restoreState, snapshotPieces } from "./snapshot.js";
import { CoreState } from "./state.js";
import { Permissions } from "./permissions.js";

type Body = NonNullable<MessageInitShape<typeof CommandSchema>["body"]>;

const bytes = (text: string) => bytesOf(text);
const secret = bytes("secret");

/** A state in which authentication is enabled: `ann` may read [a, m) and write [c, d). */
function guarded(): CoreState {
  const state = new CoreState();
  const perm = (key: string, rangeEnd: string, permType: Type) => ({
    key: bytes(key),
    rangeEnd: bytes(rangeEnd),
    permType,
  });
  const setUp: Body[] = [
    { case: "userAdd", value: { name: "root", secret } },
    { case: "userGrantRole", value: { user: "root", role: "root" } },
    { case: "userAdd", value: { name: "ann", secret } },
    { case: "roleAdd", value: { name: "some" } },
    { case: "roleGrantPermission", value: { name: "some", perm: perm("a", "m", Type.READ) } },
    { case: "roleGrantPermission", value: { name: "some", perm: perm("c", "d", Type.WRITE) } },
    { case: "userGrantRole", value: { user: "ann", role: "some" } },
    { case: "leaseGrant", value: { ID: 1n, TTL: 60n } },
    { case: "leaseGrant", value: { ID: 2n, TTL: 60n } },
    { case: "put", value: { key: bytes("c"), value: bytes("seen"), lease: 1n } },
    { case: "put", value: { key: bytes("x"), value: bytes("hidden"), lease: 2n } },
    { case: "authEnable", value: {} },
  ];
  for (const body of setUp) expect(outcome(state, body)).toBe("done");
  return state;
}

function outcome(state: CoreState, body: Body, user?: string, revision = state.auth.revision): string {
  const caller = user === undefined ? {} : { caller: { user, revision } };
  const command = create(CommandSchema, { proposer: 9n, request: 1n, body, ...caller });
  const { answer, changes } = state.apply(command, 1);
  if (!(answer instanceof CoreError)) return "done";
  return changes.length === 0 ? answer.failure : "refused, and yet something has changed";
}

describe("commands are refused when applied, as in etcd", () => {
  const key = (text: string, end = "") => ({ key: bytes(text), rangeEnd: bytes(end) });
  const put = (text: string) => ({ request: { case: "requestPut" as const, value: { key: bytes(text) } } });
  const inside = (value: object) => ({ request: { case: "requestTxn" as const, value } });
  const get = (text: string, end = "") => ({
    request: { case: "requestRange" as const, value: key(text, end) },
  });
  test.each<[string, Body, string]>([
    ["a put in the range", { case: "put", value: { key: bytes("cc") } }, "done"],
    ["a put before it", { case: "put", value: { key: bytes("b") } }, "permissionDenied"],
    ["a put at its end", { case: "put", value: { key: bytes("d") } }, "permissionDenied"],
    [
      "a put with prevKv of what may be read",
      { case: "put", value: { key: bytes("c"), prevKv: true } },
      "done",
    ],
    [
      "a put on a lease with another's key",
      { case: "put", value: { key: bytes("c"), lease: 2n } },
      "permissionDenied",
    ],
    ["a put on a lease with one's own keys", { case: "put", value: { key: bytes("cc"), lease: 1n } }, "done"],
    ["a deletion inside", { case: "deleteRange", value: key("c", "cz") }, "done"],
    ["a deletion across the end", { case: "deleteRange", value: key("c", "e") }, "permissionDenied"],
    ["a deletion from the key on", { case: "deleteRange", value: key("c", "\0") }, "permissionDenied"],
    [
      "a comparison with a hidden key",
      { case: "txn", value: { compare: [key("x")], success: [put("c")] } },
      "permissionDenied",
    ],
    [
      "a comparison across the edge",
      { case: "txn", value: { compare: [key("a", "n")], success: [put("c")] } },
      "permissionDenied",
    ],
    [
      "a hidden read on the way that is not taken",
      { case: "txn", value: { success: [put("c")], failure: [get("x")] } },
      "permissionDenied",
    ],
    [
      "a hidden read in a transaction inside",
      { case: "txn", value: { success: [put("c"), inside({ failure: [get("l", "n")] })] } },
      "permissionDenied",
    ],
    [
      "a hidden comparison in a transaction inside",
      { case: "txn", value: { success: [put("c"), inside({ compare: [key("x")] })] } },
      "permissionDenied",
    ],
    [
      "a put in a transaction on a lease with another's key",
      {
        case: "txn",
        value: { success: [{ request: { case: "requestPut", value: { key: bytes("c"), lease: 2n } } }] },
      },
      "permissionDenied",
    ],
    [
      "a transaction within one's rights",
      { case: "txn", value: { compare: [key("a")], success: [put("c"), get("a", "m")] } },
      "done",
    ],
    ["the end of a lease with one's own keys", { case: "leaseRevoke", value: { ID: 1n } }, "done"],
    ["the end of a lease with another's key", { case: "leaseRevoke", value: { ID: 2n } }, "permissionDenied"],
    ["a new lease", { case: "leaseGrant", value: { ID: 3n, TTL: 9n } }, "done"],
    ["a compaction", { case: "compact", value: { revision: 2n } }, "done"],
    ["an alarm", { case: "spaceAlarm", value: { member: 1n, raised: true } }, "permissionDenied"],
    ["a user more", { case: "userAdd", value: { name: "bob" } }, "permissionDenied"],
    ["a right more", { case: "roleGrantPermission", value: { name: "some" } }, "permissionDenied"],
    ["one's own password", { case: "userChangePassword", value: { name: "ann" } }, "permissionDenied"],
    ["rights switched off", { case: "authDisable", value: {} }, "permissionDenied"],
  ])("%s", (_, body, expected) => {
    expect(outcome(guarded(), body, "ann")).toBe(expected);
    // An unauthenticated caller and an unknown user may do none of these, and root may do all.
    expect(outcome(guarded(), body)).toBe("userNameEmpty");
    expect(outcome(guarded(), body, "eve")).toMatch(/permissionDenied|userNotFound/);
    expect(outcome(guarded(), body, "root")).toMatch(/done|permissionMissing/);
  });
});

test("a put that returns the previous value needs the right to read it", () => {
  const state = guarded();
  const perm = { key: bytes("w"), permType: Type.WRITE };
  expect(outcome(state, { case: "roleGrantPermission", value: { name: "some", perm } }, "root")).toBe("done");
  expect(outcome(state, { case: "put", value: { key: bytes("w") } }, "ann")).toBe("done");
  const prevKv = { key: bytes("w"), prevKv: true };
  expect(outcome(state, { case: "put", value: prevKv }, "ann")).toBe("permissionDenied");
  const success = [{ request: { case: "requestPut" as const, value: prevKv } }];
  expect(outcome(state, { case: "txn", value: { success } }, "ann")).toBe("permissionDenied");
});

test("a permission of an unknown type grants nothing", () => {
  const perm = { key: bytes("a"), rangeEnd: bytes("b"), permType: 7 as Type };
  const permissions = new Permissions([create(PermissionSchema, perm)]);
  const range = rangeOf(bytes("a"), bytes(""));
  expect([permissions.allow("read", range), permissions.allow("write", range)]).toEqual([false, false]);
});

test("an authentication from before a change of rights is refused", () => {
  const state = guarded();
  const { revision } = state.auth;
  expect(outcome(state, { case: "roleAdd", value: { name: "other" } }, "root")).toBe("done");
  expect(outcome(state, { case: "put", value: { key: bytes("c") } }, "ann", revision)).toBe(
    "authRevisionOld",
  );
  expect(outcome(state, { case: "put", value: { key: bytes("c") } }, "ann")).toBe("done");
});

test("a leader's own proposals have no user and are executed", () => {
  const state = guarded();
  const body: Body = { case: "leaseExpire", value: { ids: [2n], term: 1n, apart: true } };
  const { ended } = state.apply(create(CommandSchema, { body }), 1);
  expect(ended).toEqual([2n]);
});

test("users and roles are managed as in etcd, with its refusals", () => {
  const state = new CoreState();
  const perm = { key: bytes("k"), permType: Type.READ };
  const script: [Body, string][] = [
    [{ case: "authEnable", value: {} }, "rootUserMissing"],
    [{ case: "userAdd", value: { name: "", secret } }, "userNameEmpty"],
    [{ case: "userAdd", value: { name: "root", secret } }, "done"],
    [{ case: "userAdd", value: { name: "root", secret } }, "userExists"],
    [{ case: "authEnable", value: {} }, "rootRoleMissing"],
    [{ case: "userGrantRole", value: { user: "root", role: "none" } }, "roleNotFound"],
    [{ case: "userGrantRole", value: { user: "none", role: "root" } }, "userNotFound"],
    [{ case: "userGrantRole", value: { user: "root", role: "root" } }, "done"],
    [{ case: "roleAdd", value: { name: "" } }, "roleNameEmpty"],
    [{ case: "roleAdd", value: { name: "r" } }, "done"],
    [{ case: "roleAdd", value: { name: "r" } }, "roleExists"],
    [{ case: "roleGrantPermission", value: { name: "r" } }, "permissionMissing"],
    [{ case: "roleGrantPermission", value: { name: "q", perm } }, "roleNotFound"],
    [{ case: "roleGrantPermission", value: { name: "r", perm } }, "done"],
    [{ case: "roleRevokePermission", value: { role: "r", key: bytes("j") } }, "permissionNotGranted"],
    [{ case: "userRevokeRole", value: { name: "root", role: "r" } }, "roleNotGranted"],
    [{ case: "authenticate", value: { user: "root", token: "t", revision: 5n } }, "authNotEnabled"],
    [{ case: "authEnable", value: {} }, "done"],
  ];
  expect(script.map(([body]) => outcome(state, body))).toEqual(script.map(([, expected]) => expected));
  expect(state.auth.revision).toBe(5n);
  const enabled: [Body, string][] = [
    [{ case: "userDelete", value: { name: "root" } }, "authManagement"],
    [{ case: "userRevokeRole", value: { name: "root", role: "root" } }, "authManagement"],
    [{ case: "roleDelete", value: { role: "root" } }, "authManagement"],
    [{ case: "userAdd", value: { name: "cert" } }, "done"],
    [{ case: "authenticate", value: { user: "cert", token: "t", revision: 6n } }, "authFailed"],
    [{ case: "authenticate", value: { user: "none", token: "t", revision: 6n } }, "authFailed"],
    [{ case: "authenticate", value: { user: "root", token: "t", revision: 5n } }, "authRevisionOld"],
    [{ case: "authenticate", value: { user: "root", token: "t", revision: 6n } }, "done"],
    [{ case: "roleDelete", value: { role: "r" } }, "done"],
    [{ case: "authDisable", value: {} }, "done"],
    [{ case: "userDelete", value: { name: "root" } }, "done"],
  ];
  const outcomes = enabled.map(([body]) => outcome(state, body, "root"));
  expect(outcomes).toEqual(enabled.map(([, expected]) => expected));
});

test("a role deleted and created anew grants nothing to its former users", () => {
  const state = guarded();
  expect(outcome(state, { case: "roleDelete", value: { role: "some" } }, "root")).toBe("done");
  expect(outcome(state, { case: "roleAdd", value: { name: "some" } }, "root")).toBe("done");
  const perm = { key: bytes("c"), permType: Type.WRITE };
  expect(outcome(state, { case: "roleGrantPermission", value: { name: "some", perm } }, "root")).toBe("done");
  expect(outcome(state, { case: "put", value: { key: bytes("c") } }, "ann")).toBe("permissionDenied");
});

test("a snapshot has users, roles and permissions; without any, it is as in earlier versions", () => {
  const state = guarded();
  const pieces = [...snapshotPieces(frozen(state))];
  const restored = restoreState(pieces);
  expect(restored.auth.users()).toEqual(state.auth.users());
  expect(restored.auth.roles()).toEqual(state.auth.roles());
  expect([...snapshotPieces(frozen(restored))]).toEqual(pieces);
  expect(restored.auth).toMatchObject({ isEnabled: true, revision: state.auth.revision });
  expect(restored.bytes).toBe(state.bytes);
  for (const [text, expected] of [
    ["c", "done"],
    ["d", "permissionDenied"],
  ] as const)
    expect(outcome(restored, { case: "put", value: { key: bytes(text) } }, "ann")).toBe(expected);
  // Head and end.
  expect([...snapshotPieces(frozen(new CoreState()))]).toHaveLength(2);
});

test("a range is permitted if the union of a user's ranges covers each of its keys", () => {
  const letter = fc.constantFrom(..."abcdef");
  const range = fc.tuple(letter, fc.constantFrom("", "\0", ..."abcdefg"));
  const granted = fc.array(fc.tuple(range, fc.constantFrom(Type.READ, Type.WRITE, Type.READWRITE)), {
    maxLength: 5,
  });
  // All keys of one or two letters, and their immediate successors.
  const keys = [..."abcdefgh"].flatMap((one) => [one, `${one}\0`, `${one}b`, `${one}b\0`]);
  const isIn = ({ from, to }: KeyRange, key: string) => key >= from && (to === undefined || key < to);
  fc.assert(
    fc.property(granted, range, (grants, [key, end]) => {
      const permissions = new Permissions(
        grants.map(([[from, to], permType]): Permission =>
          create(PermissionSchema, { key: bytes(from), rangeEnd: bytes(to), permType }),
        ),
      );
      const asked = rangeOf(bytes(key), bytes(end));
      const inside = keys.filter((each) => isIn(asked, each));
      fc.pre(inside.length > 0);
      const mayRead = grants.filter(([, type]) => type !== Type.WRITE);
      const covered = inside.every((each) =>
        mayRead.some(([[from, to]]) => isIn(rangeOf(bytes(from), bytes(to)), each)),
      );
      // A range without an end needs a permission without an end.
      const endless = asked.to !== undefined || mayRead.some(([[, to]]) => to === "\0");
      expect(permissions.allow("read", asked)).toBe(covered && endless);
    }),
    { numRuns: 2_000 },
  );
});

test("an unknown name gets the secret of the next user with a password, or else of the first", () => {
  const auth = new AuthState();
  expect(auth.secretAfter("a")).toHaveLength(0);
  const secretOf = (name: string) => Buffer.from(name === "c" ? "" : `of ${name}`);
  for (const name of ["e", "b", "c", "d"])
    auth.addUser(create(UserAddSchema, { name, secret: secretOf(name) }));
  const after = (name: string) => Buffer.from(auth.secretAfter(name)).toString();
  expect(["a", "b", "bb", "d", "e", "z"].map(after)).toEqual([
    "of b",
    "of d",
    "of d",
    "of e",
    "of b",
    "of b",
  ]);
});
