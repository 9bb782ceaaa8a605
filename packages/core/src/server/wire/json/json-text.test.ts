import { create, type DescMessage, type Message, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AuthRoleGetResponseSchema } from "leasehold/etcd/gen/etcd/auth_pb.js";
import { AlarmResponseSchema } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { Event_EventType } from "leasehold/etcd/gen/etcd/kv_pb.js";
import {
  PutResponseSchema,
  RangeResponseSchema,
  type ResponseOp,
  ResponseOpSchema,
  TxnResponseSchema,
  WatchResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { ReportResponseSchema } from "leasehold/etcd/gen/leasehold/own_pb.js";
import { finish } from "../../../state/steps.js";
import { type LazyList, TextParts, writeMessage } from "./json-text.js";

const header = { clusterId: 2n ** 64n - 1n, memberId: 9n, revision: 3n, raftTerm: 4n };
const kv = {
  key: Buffer.from([0, 255, 62, 63]),
  value: Buffer.from("value"),
  modRevision: 2n ** 62n,
  lease: -1n,
};
const range = { header, kvs: [kv, {}, kv], more: true, count: 3n };

interface Written {
  readonly text: string;
  /** The result of the package's own writer. */
  readonly expected: unknown;
}

function textOf(schema: DescMessage, message: Message): string {
  const parts = new TextParts();
  finish(writeMessage(parts, schema, message));
  return parts.take();
}

function written<Schema extends DescMessage>(schema: Schema, content: MessageInitShape<Schema>): Written {
  const message = create(schema, content);
  const expected = toJson(schema, message, { useProtoFieldName: true });
  return { text: textOf(schema, message), expected };
}

const operation = (response: ResponseOp["response"]) => create(ResponseOpSchema, { response });
const inner = create(TxnResponseSchema, {
  succeeded: true,
  responses: [operation({ case: "responsePut", value: create(PutResponseSchema) })],
});
const cancelReason = 'a "<b>" & \u2028';

test.each([
  written(RangeResponseSchema, {}),
  written(RangeResponseSchema, range),
  written(PutResponseSchema, { header: {}, prevKv: {} }),
  written(TxnResponseSchema, {
    header,
    responses: [
      create(ResponseOpSchema),
      operation({ case: "responseRange", value: create(RangeResponseSchema, range) }),
      operation({ case: "responseTxn", value: inner }),
    ],
  }),
  written(WatchResponseSchema, {
    watchId: -7n,
    canceled: true,
    cancelReason,
    events: [
      { type: Event_EventType.DELETE, kv },
      { kv, prevKv: kv },
    ],
  }),
  written(AlarmResponseSchema, { alarms: [{ memberID: 1n, alarm: 1 }] }),
  written(AuthRoleGetResponseSchema, { perm: [{ permType: 2, key: Buffer.from("a") }, {}] }),
  written(ReportResponseSchema, { steadyMs: 1.25, name: "é", syncs: { p50Ms: 0.1 }, leaseholdVersion: "" }),
])("messages are what protobuf's JSON has for them: %#", ({ expected, text }) => {
  expect(JSON.parse(text)).toEqual(expected);
  // Escaped as by Go, so that no browser takes it for a page.
  expect(text).not.toMatch(/[<>&\u2028]/);
});

test("a lazy list is written item by item, even in a nested message", () => {
  const { kvs } = create(RangeResponseSchema, { kvs: [kv, kv] });
  const lazy = create(RangeResponseSchema, { count: 2n });
  const lazyList: LazyList = (message, { name }) =>
    message === lazy && name === "kvs" ? kvs.values() : undefined;
  const inTxn = (value: Message<"etcdserverpb.RangeResponse">) =>
    create(TxnResponseSchema, { responses: [operation({ case: "responseRange", value: value as never })] });
  const whole = create(RangeResponseSchema, { count: 2n, kvs });
  for (const [schema, message, same] of [
    [RangeResponseSchema, lazy, whole],
    [TxnResponseSchema, inTxn(lazy), inTxn(whole)],
  ] as const) {
    const parts = new TextParts();
    finish(writeMessage(parts, schema, message, lazyList));
    expect(parts.take()).toBe(textOf(schema, same));
  }
});

test("a megabyte is written in linear time, and many keys in steps", () => {
  const value = Buffer.alloc(1_000_000, 7);
  const text = textOf(RangeResponseSchema, create(RangeResponseSchema, { kvs: [{ value }] }));
  expect(text).toBe(`{"kvs":[{"value":"${value.toString("base64")}"}]}`);
  const kvs = Array.from({ length: 1_000 }, () => kv);
  const steps = writeMessage(new TextParts(), RangeResponseSchema, create(RangeResponseSchema, { kvs }));
  let count = 0;
  while (steps.next().done !== true) count += 1;
  expect(count).toBe(1_000);
});
