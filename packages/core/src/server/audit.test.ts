import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AuthUserAddRequestSchema } from "leasehold/etcd/gen/etcd/auth_pb.js";
import { MemberRemoveRequestSchema } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { TxnRequestSchema, TxnResponseSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { AuditTrail } from "./audit.js";
import { Metadata } from "./wire/rpc/call.js";

interface Line {
  readonly id: string;
  readonly text: string;
  readonly fields: object;
}

/** Passes one finished call to the trail. */
async function lineOf(
  method: string,
  request: unknown,
  code = 0,
  response?: unknown,
  user: string | Promise<string> = "root",
): Promise<Line[]> {
  const lines: Line[] = [];
  const log = (id: string, text: string, fields: object) => void lines.push({ id, text, fields });
  const limited = (id: string, _cause: string, text: string, fields: object) => log(id, text, fields);
  const trail = new AuditTrail({ log, limited, nameOf: (id) => `s${id}` }, () => user);
  const call = {
    request,
    code,
    metadata: new Metadata(new Map()),
    peer: { address: "h:1", commonName: "" },
  };
  trail.over(method, call, response);
  await new Promise((resolve) => setImmediate(resolve));
  return lines;
}

test("a change of a user is logged with its author, and without the password", async () => {
  const request = create(AuthUserAddRequestSchema, { name: "ann", password: "secret" });
  const lines = await lineOf("UserAdd", request);
  expect(lines).toMatchObject([
    { id: "users-changed", fields: { call: "UserAdd", subject: "ann", by: "root", address: "h:1" } },
  ]);
  expect(JSON.stringify(lines)).not.toContain("secret");
});

test("a removed server is logged by name, and an unauthenticated change as anonymous", async () => {
  const request = create(MemberRemoveRequestSchema, { ID: 7n });
  expect(await lineOf("MemberRemove", request, 0, undefined, "")).toMatchObject([
    { id: "members-changed", fields: { subject: "s7", by: "anonymous" } },
  ]);
});

test("a refused call changes nothing, and is logged as refused", async () => {
  const request = create(AuthUserAddRequestSchema, { name: "ann", password: "secret" });
  expect(await lineOf("UserAdd", request, 7, undefined, "bob")).toMatchObject([
    { id: "permission-denied", fields: { call: "UserAdd", by: "bob" } },
  ]);
  const gone = Promise.reject(new Error("invalid token"));
  gone.catch(() => undefined);
  expect(await lineOf("Range", {}, 16, undefined, gone)).toMatchObject([{ id: "credential-refused" }]);
  expect(await lineOf("Authenticate", { name: "ann", password: "wrong" }, 3)).toMatchObject([
    { id: "credential-refused", fields: { subject: "ann" } },
  ]);
  expect(await lineOf("Range", {}, 3)).toEqual([]);
});

const record = (asked?: object) =>
  Buffer.from(JSON.stringify({ holder: "w.1", label: "", nonce: "n", seconds: 5, spreadMs: 1, asked }));
const put = (value: Uint8Array, ignoreLease = true) =>
  create(TxnRequestSchema, {
    success: [
      { request: { case: "requestPut", value: { key: Buffer.from("leases/x"), value, ignoreLease } } },
    ],
  });

test("a transaction that breaks a lease is logged if it succeeded, and others are not", async () => {
  const breaks = put(record({ by: "op.1", broken: true }));
  const [done, failed] = [true, false].map((succeeded) => create(TxnResponseSchema, { succeeded }));
  expect(await lineOf("Txn", breaks, 0, done, "ann")).toMatchObject([
    { id: "lease-broken", fields: { resource: "leases/x", holder: "w.1", by: "ann", name: "op.1" } },
  ]);
  expect(await lineOf("Txn", breaks, 0, failed)).toEqual([]);
  expect(await lineOf("Txn", put(record({ by: "op.1", broken: false })), 0, done)).toEqual([]);
  expect(await lineOf("Txn", put(record({ by: "op.1", broken: true }), false), 0, done)).toEqual([]);
  expect(await lineOf("Txn", put(Buffer.from('{"broken":true')), 0, done)).toEqual([]);
});

test("a change whose client is gone is logged with an unknown outcome: it may still happen", async () => {
  const request = create(AuthUserAddRequestSchema, { name: "ann", password: "secret" });
  for (const code of [1, 4, 14])
    expect(await lineOf("UserAdd", request, code)).toMatchObject([
      { id: "users-changed", fields: { subject: "ann", by: "root", outcome: "unknown" } },
    ]);
  const breaks = put(record({ by: "op.1", broken: true }));
  expect(await lineOf("Txn", breaks, 1)).toMatchObject([
    { id: "lease-broken", fields: { outcome: "unknown" } },
  ]);
  expect(await lineOf("UserAdd", request, 3)).toEqual([]);
  expect(await lineOf("Range", {}, 1)).toEqual([]);
});
