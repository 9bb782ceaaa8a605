import { create, type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import type { Event, KeyValue } from "leasehold/etcd/gen/etcd/kv_pb.js";
import {
  DeleteRangeResponseSchema,
  LeaseLeasesResponseSchema,
  LeaseTimeToLiveResponseSchema,
  RangeResponseSchema,
  type ResponseOp,
  type TxnResponse,
  TxnResponseSchema,
  type WatchResponse,
  WatchResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { LongMessage } from "../../../http2/stream.js";
import type { ClientResponse } from "../../../replica/types.js";
import { encodedKeyValues } from "../../../state/key-value.js";
import { LongRange } from "../../../state/long-range.js";
import type { Steps } from "../../../state/steps.js";

/** Bytes, or a part that is encoded when it is sent. */
type Part = Uint8Array | LaterPart;

interface LaterPart {
  readonly length: number;
  pieces(): Iterable<Uint8Array>;
}

/** An answer encoded while it is sent, at its client's pace. */
export class LongAnswer implements LongMessage {
  readonly answer: AnyAnswer;
  readonly length: number;
  readonly #parts: readonly Part[];

  constructor(answer: AnyAnswer, parts: readonly Part[]) {
    this.answer = answer;
    this.length = lengthOf(parts);
    this.#parts = parts;
  }

  *pieces(): Generator<Uint8Array> {
    for (const part of this.#parts) {
      if (part instanceof Uint8Array) yield part;
      else yield* part.pieces();
    }
  }
}

/** Number of items encoded in one step. */
const stepItems = 64;
const stepBytes = 64 * 1024;

/**
 * Returns an encoder of watch responses. A response shared by many watches is encoded once. So is a shared
 * event: as the last field, its bytes follow the others.
 */
export function watchEncoder(): (response: WatchResponse) => Uint8Array {
  let last: WatchResponse | undefined;
  let lastBytes = new Uint8Array();
  let event: Event | undefined;
  let eventBytes = new Uint8Array();
  return (response) => {
    if (response === last) return lastBytes;
    if (response.events.length !== 1) return toBinary(WatchResponseSchema, response);
    const [only] = response.events;
    if (only !== event) {
      event = only!;
      eventBytes = toBinary(WatchResponseSchema, create(WatchResponseSchema, { events: [event] }));
    }
    lastBytes = Buffer.concat([toBinary(WatchResponseSchema, { ...response, events: [] }), eventBytes]);
    last = response;
    return lastBytes;
  };
}

/** Answers with a list that may be long, and the list's field. */
const lists = {
  "etcdserverpb.RangeResponse": [RangeResponseSchema, "kvs"],
  "etcdserverpb.DeleteRangeResponse": [DeleteRangeResponseSchema, "prevKvs"],
  "etcdserverpb.LeaseTimeToLiveResponse": [LeaseTimeToLiveResponseSchema, "keys"],
  "etcdserverpb.LeaseLeasesResponse": [LeaseLeasesResponseSchema, "leases"],
  "etcdserverpb.WatchResponse": [WatchResponseSchema, "events"],
} as const;

type AnyAnswer = ClientResponse | WatchResponse;
type Listing = Extract<AnyAnswer, { $typeName: keyof typeof lists }>;
type Item = KeyValue | Uint8Array | Event | { readonly ID: bigint };

/** Whether encoding the answer at once would block the event loop for too long. */
export function isLarge(answer: AnyAnswer): boolean {
  // The most frequent case first: nearly every watch response has only one change.
  if (answer.$typeName === "etcdserverpb.WatchResponse") return isLong(answer.events);
  if (answer instanceof LongRange) return true;
  if (answer.$typeName === "etcdserverpb.TxnResponse")
    return answer.responses.length > 0 && answer.responses.some((operation) => isLargeOperation(operation));
  return isListing(answer) && isLong(itemsOf(answer));
}

/** Whether the request may have changed something, so that repeating it might change it twice. */
export function hasWritten(answer: ClientResponse): boolean {
  if (answer.$typeName === "etcdserverpb.DeleteRangeResponse") return true;
  if (answer.$typeName !== "etcdserverpb.TxnResponse") return false;
  return answer.responses.some(
    ({ response: { case: kind, value } }) =>
      kind === "responsePut" || (value !== undefined && hasWritten(value)),
  );
}

function isLong(items: readonly Item[]): boolean {
  if (items.length > stepItems) return true;
  let bytes = 0;
  for (const item of items) bytes += sizeOf(item);
  return bytes > stepBytes;
}

/** Approximate memory overhead per answer, and per item. */
const overheadBytes = 1_024;
/** Overhead of a long answer, including the piece being sent: measured, and rounded up. */
const longOverheadBytes = 64 * 1024;
const itemOverheadBytes = 64;

/** Bytes of versions that by now only this answer may retain. */
export function retainedBytes(answer: ClientResponse): number {
  if (answer instanceof LongRange) return answer.retainedBytes;
  if (answer.$typeName !== "etcdserverpb.TxnResponse") return 0;
  let most = 0;
  for (const { response } of answer.responses)
    if (response.value !== undefined) most = Math.max(most, retainedBytes(response.value));
  return most;
}

/** Returns the answer's range that retains a tree. All ranges of a transaction share one tree. */
export function rangeWithTree(answer: ClientResponse): LongRange | undefined {
  if (answer instanceof LongRange) return answer.treeBytes > 0 ? answer : undefined;
  if (answer.$typeName !== "etcdserverpb.TxnResponse") return undefined;
  for (const { response } of answer.responses) {
    const found = response.value && rangeWithTree(response.value);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Approximate memory of an answer until its client has read it. */
export function bytesOfAnswer(answer: ClientResponse): number {
  if (answer instanceof LongRange) return longOverheadBytes + answer.heldBytes;
  if (answer.$typeName === "etcdserverpb.TxnResponse") return overheadBytes + bytesOfTxn(answer);
  return overheadBytes + (isListing(answer) ? bytesOfItems(itemsOf(answer)) : 0);
}

function bytesOfItems(items: readonly Item[]): number {
  let bytes = items.length * itemOverheadBytes;
  for (const item of items) bytes += sizeOf(item);
  return bytes;
}

function bytesOfTxn({ responses }: TxnResponse): number {
  let bytes = responses.length * itemOverheadBytes;
  for (const { response } of responses)
    if (response.value !== undefined) bytes += bytesOfAnswer(response.value);
  return bytes;
}

/**
 * Determines the length and the parts of an encoded answer. The result is equivalent to encoding at once: a
 * repeated field may be split into several parts of a message.
 */
export function* encode(answer: AnyAnswer): Steps<LongAnswer> {
  return new LongAnswer(answer, yield* partsOf(answer));
}

function* partsOf(answer: AnyAnswer): Steps<Part[]> {
  if (answer instanceof LongRange) return partsOfRange(answer);
  if (answer.$typeName === "etcdserverpb.TxnResponse") return yield* partsOfTxn(answer);
  if (isListing(answer)) return yield* partsOfList(answer);
  throw new TypeError(`${answer.$typeName} has no list`);
}

function partsOfRange(answer: LongRange): Part[] {
  const { count, encodedBytes: length, header, keysOnly, more } = answer;
  const head = create(RangeResponseSchema, { more, count, ...(header && { header }) });
  const field = RangeResponseSchema.field.kvs.number;
  const pieces = function* () {
    for (const versions of answer.pieces()) yield* encodedKeyValues(field, versions, keysOnly);
  };
  return [toBinary(RangeResponseSchema, head), { length, pieces }];
}

/** Encodes twice, the first time for the length only: a complete encoded copy might be buffered for long. */
function* partsOfList(answer: Listing): Steps<Part[]> {
  const [schema, name] = lists[answer.$typeName] as readonly [DescMessage, string];
  const bytesOf = (fields: object) =>
    toBinary(schema, Object.assign(create(schema), fields) as MessageShape<DescMessage>);
  const parts: Part[] = [bytesOf({ ...answer, [name]: [] })];
  const later = (items: readonly Item[]): Part => ({
    length: bytesOf({ [name]: items }).length,
    pieces: () => [bytesOf({ [name]: items })],
  });
  let some: Item[] = [];
  let bytes = 0;
  for (const item of itemsOf(answer)) {
    some.push(item);
    bytes += sizeOf(item);
    if (some.length < stepItems && bytes < stepBytes) continue;
    parts.push(later(some));
    some = [];
    bytes = 0;
    yield;
  }
  parts.push(later(some));
  return parts;
}

/** Field numbers, and the head of a nested message: field number, wire type and length. */
const responsesField = 3;
const operationFields = { responseRange: 1, responseDeleteRange: 3, responseTxn: 4 } as const;
const lengthDelimited = 2;

function* partsOfTxn(answer: TxnResponse): Steps<Part[]> {
  const head = Object.assign(create(TxnResponseSchema), answer, { responses: [] });
  const parts: Part[] = [toBinary(TxnResponseSchema, head)];
  for (const operation of answer.responses) {
    if (!isLargeOperation(operation)) {
      parts.push(toBinary(TxnResponseSchema, create(TxnResponseSchema, { responses: [operation] })));
      continue;
    }
    const { response } = operation;
    const field = operationFields[response.case as keyof typeof operationFields];
    const inner = inside(field, yield* partsOf(response.value as Listing | TxnResponse));
    for (const part of inside(responsesField, inner)) parts.push(part);
  }
  return parts;
}

function isLargeOperation({ response }: ResponseOp): boolean {
  return response.value !== undefined && response.case !== "responsePut" && isLarge(response.value);
}

function inside(field: number, parts: readonly Part[]): Part[] {
  return [Uint8Array.from([field * 8 + lengthDelimited, ...varint(lengthOf(parts))]), ...parts];
}

function* varint(value: number): Generator<number> {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) yield (rest % 128) + 128;
  yield rest;
}

function lengthOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}

function isListing(answer: AnyAnswer): answer is Listing {
  return answer.$typeName in lists;
}

function itemsOf(answer: Listing): readonly Item[] {
  const [, name] = lists[answer.$typeName];
  return (answer as unknown as Record<typeof name, readonly Item[]>)[name];
}

function sizeOf(item: Item): number {
  if (item instanceof Uint8Array) return item.length;
  if ("value" in item) return item.key.length + item.value.length;
  return "kv" in item ? sizeOfVersion(item.kv) + sizeOfVersion(item.prevKv) : 0;
}

function sizeOfVersion(version: KeyValue | undefined): number {
  return version === undefined ? 0 : version.key.length + version.value.length;
}
