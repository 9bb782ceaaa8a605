import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { EventSchema } from "leasehold/etcd/gen/etcd/kv_pb.js";
import {
  DeleteRangeResponseSchema,
  LeaseLeasesResponseSchema,
  LeaseTimeToLiveResponseSchema,
  RangeRequestSchema,
  RangeResponseSchema,
  type ResponseOp,
  ResponseOpSchema,
  TxnRequestSchema,
  type TxnResponse,
  TxnResponseSchema,
  WatchResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { ClientResponse } from "../../../replica/types.js";
import { LongRange } from "../../../state/long-range.js";
import { CoreState } from "../../../state/state.js";
import { finish } from "../../../state/steps.js";
import { encode, isLarge, type LongAnswer, watchEncoder } from "./encode.js";

const bytes = (length: number) => new Uint8Array(length).fill(7);
const header = { clusterId: 1n, memberId: 2n, revision: 3n, raftTerm: 4n };
const kvs = (count: number, size: number) =>
  Array.from({ length: count }, (_, at) => ({ key: bytes(3), value: bytes(size), modRevision: BigInt(at) }));

/** All bytes sent. Their length is the announced one. */
function bytesOf(answer: LongAnswer): Buffer {
  const whole = Buffer.concat([...answer.pieces()]);
  expect(whole.length).toBe(answer.length);
  return whole;
}

const putOf = (key: string, size: number) =>
  create(CommandSchema, { body: { case: "put", value: { key: Buffer.from(key), value: bytes(size) } } });

const isSame = (one: Uint8Array, other: Uint8Array) => Buffer.compare(one, other) === 0;

const listing = fc.record({
  count: fc.constantFrom(0, 1, 63, 64, 65, 300),
  size: fc.constantFrom(0, 10, 70_000),
});

function rangeOf({ count, size }: { count: number; size: number }) {
  return create(RangeResponseSchema, {
    header,
    kvs: kvs(Math.min(count, size > 1_000 ? 3 : count), size),
    more: true,
    count: 9n,
  });
}

test("an answer encoded in steps is equivalent to one encoded at once", () => {
  fc.assert(
    fc.property(listing, ({ count, size }) => {
      const ids = Array.from({ length: count }, (_, index) => ({ ID: BigInt(index) }));
      const answers = [
        [RangeResponseSchema, rangeOf({ count, size })],
        [
          DeleteRangeResponseSchema,
          create(DeleteRangeResponseSchema, { header, deleted: 5n, prevKvs: kvs(count, 4) }),
        ],
        [LeaseLeasesResponseSchema, create(LeaseLeasesResponseSchema, { header, leases: ids })],
        [
          LeaseTimeToLiveResponseSchema,
          create(LeaseTimeToLiveResponseSchema, { header, TTL: -1n, keys: ids.map(() => bytes(4)) }),
        ],
      ] as const;
      for (const [schema, answer] of answers) {
        const read = fromBinary(schema, bytesOf(finish(encode(answer as ClientResponse))));
        expect(isSame(toBinary(schema, read as never), toBinary(schema, answer as never))).toBe(true);
      }
    }),
    { numRuns: 30 },
  );
});

test("a transaction with nested transactions is equivalent, encoded in steps or at once", () => {
  const { operation } = fc.letrec<{ operation: ResponseOp }>((tie) => ({
    operation: fc.oneof(
      { depthSize: "small" },
      fc.constant(create(ResponseOpSchema, { response: { case: "responsePut", value: { header } } })),
      listing.map((list) =>
        create(ResponseOpSchema, { response: { case: "responseRange", value: rangeOf(list) } }),
      ),
      listing.map(({ count }) =>
        create(ResponseOpSchema, {
          response: { case: "responseDeleteRange", value: { deleted: 1n, prevKvs: kvs(count, 3) } },
        }),
      ),
      fc.array(tie("operation"), { maxLength: 3 }).map((responses) =>
        create(ResponseOpSchema, {
          response: { case: "responseTxn", value: { header, succeeded: true, responses } },
        }),
      ),
    ),
  }));
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 4 }), (responses) => {
      const answer = create(TxnResponseSchema, { header, succeeded: true, responses });
      const read = fromBinary(TxnResponseSchema, bytesOf(finish(encode(answer))));
      expect(isSame(toBinary(TxnResponseSchema, read), toBinary(TxnResponseSchema, answer))).toBe(true);
    }),
    { numRuns: 100 },
  );
});

test("a long range is equivalent, alone or twice in a transaction, with or without a write", () => {
  const state = new CoreState();
  for (let number = 0; number < 300; number += 1) state.apply(putOf(`k${number}`, number * 40), 1);
  const range = { key: Buffer.from("k"), rangeEnd: Buffer.from("l") };
  const operation = { request: { case: "requestRange", value: range } } as const;
  const answer = finish(state.read(create(RangeRequestSchema, range)));
  expect(answer).toBeInstanceOf(LongRange);
  const read = fromBinary(RangeResponseSchema, bytesOf(finish(encode(answer))));
  expect(isSame(toBinary(RangeResponseSchema, read), toBinary(RangeResponseSchema, answer))).toBe(true);
  const put = {
    request: { case: "requestPut", value: { key: Buffer.from("k7"), value: bytes(9) } },
  } as const;
  const txns = [
    [operation, operation],
    [operation, put, operation],
  ].map((success) => create(TxnRequestSchema, { success }));
  const written = state.apply(create(CommandSchema, { body: { case: "txn", value: txns[1]! } }), 1).answer;
  for (const each of [finish(state.readTxn(txns[0]!)), written as TxnResponse]) {
    expect(isLarge(each)).toBe(true);
    const decoded = fromBinary(TxnResponseSchema, bytesOf(finish(encode(each))));
    expect(isSame(toBinary(TxnResponseSchema, decoded), toBinary(TxnResponseSchema, each))).toBe(true);
  }
});

test("an answer is large if it has many items or many bytes", () => {
  expect(isLarge(rangeOf({ count: 64, size: 10 }))).toBe(false);
  expect(isLarge(rangeOf({ count: 65, size: 0 }))).toBe(true);
  expect(isLarge(rangeOf({ count: 1, size: 70_000 }))).toBe(true);
});

test("an event shared by many watches is equivalent to separate encodings", () => {
  const encodeWatch = watchEncoder();
  const [one, other] = ["a", "b"].map((name) =>
    create(EventSchema, { kv: { key: new TextEncoder().encode(name), modRevision: 7n } }),
  );
  for (const [watchId, events] of [
    [1n, [one!]],
    [2n, [one!]],
    [3n, [other!]],
    [4n, [one!, other!]],
    [5n, []],
    [6n, [one!]],
  ] as const) {
    const response = create(WatchResponseSchema, { header, watchId, fragment: true, events: [...events] });
    expect(isSame(encodeWatch(response), toBinary(WatchResponseSchema, response))).toBe(true);
  }
});
