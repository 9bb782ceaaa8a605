import { createHash } from "node:crypto";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  RangeRequest_SortOrder as Order,
  RangeRequest_SortTarget as Target,
  RangeRequestSchema,
  type RangeResponse,
  RangeResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { effort } from "../../../../test/support/effort.js";
import { encodedKeyValues } from "./key-value.js";
import { AnswerBudget, LongRange } from "./long-range.js";
import { Revisions } from "./revisions.js";
import { readRange } from "./range.js";
import { finish } from "./steps.js";

const bytes = (text: string) => new TextEncoder().encode(text);
const keyAt = (number: number) => `k${String(number).padStart(5, "0")}`;

function filled(count: number, value: string | Uint8Array): Revisions {
  const revisions = new Revisions();
  for (let number = 0; number < count; number += 1) change(revisions, keyAt(number), value);
  return revisions;
}

function change(revisions: Revisions, key: string, value: string | Uint8Array | undefined, lease = 0n): void {
  const revision = revisions.current + 1;
  const before = revisions.newest(key);
  if (value !== undefined) revisions.put(key, value, lease, revision, before);
  else if (before !== undefined) revisions.delete(key, revision);
  else return;
  revisions.commit(revision);
}

type Asked = Parameters<typeof create<typeof RangeRequestSchema>>[1];

const read = (view: Parameters<typeof readRange>[0], asked: Asked) =>
  finish(readRange(view, create(RangeRequestSchema, asked), new AnswerBudget(Infinity)));

const all = { key: bytes("k"), rangeEnd: bytes("l") };

/** Encodes and decodes the answer as on the wire: all pieces in a row. */
function sent(answer: RangeResponse): RangeResponse {
  if (!(answer instanceof LongRange)) return answer;
  const { count, keysOnly, more } = answer;
  const pieces = [...answer.pieces()].flatMap((versions) => [...encodedKeyValues(2, versions, keysOnly)]);
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  expect(length).toBe(answer.encodedBytes);
  const head = toBinary(RangeResponseSchema, create(RangeResponseSchema, { count, more }));
  return fromBinary(RangeResponseSchema, Buffer.concat([head, ...pieces]));
}

const hashOf = (content: Uint8Array) => createHash("sha256").update(content).digest("hex").slice(0, 8);

const plain = ({ count, kvs, more }: RangeResponse) => ({
  count,
  more,
  kvs: kvs.map(({ createRevision, key, lease, modRevision, value, version }) =>
    [Buffer.from(key), value.length, hashOf(value), createRevision, modRevision, version, lease].join(" "),
  ),
});

test("an answer is long if it has at least 65 keys or more than 64 KiB", () => {
  expect(read(filled(64, "v").view(), all)).not.toBeInstanceOf(LongRange);
  expect(read(filled(65, "v").view(), all)).toBeInstanceOf(LongRange);
  const keyLength = keyAt(0).length;
  expect(read(filled(1, new Uint8Array(65_536 - keyLength)).view(), all)).not.toBeInstanceOf(LongRange);
  expect(read(filled(1, new Uint8Array(65_537 - keyLength)).view(), all)).toBeInstanceOf(LongRange);
  const keysOnly = { ...all, keysOnly: true };
  expect(read(filled(1, new Uint8Array(100_000)).view(), keysOnly)).not.toBeInstanceOf(LongRange);
});

const keysMax = 300;
const values = fc.oneof(
  { weight: 8, arbitrary: fc.string({ maxLength: 20, unit: "binary-ascii" }) },
  fc.constant(undefined),
  fc.constantFrom(1_025, 5_000, 70_000),
);
const contentOf = (value: string | number | undefined) =>
  typeof value === "number" ? new Uint8Array(value).fill(value % 251) : value;
const changes = fc.array(fc.tuple(fc.nat(keysMax), values, fc.constantFrom(0n, 7n, 2n ** 62n)), {
  minLength: 200,
  maxLength: 900,
});
const asked = fc.record({
  limit: fc.constantFrom(0n, 0n, 1n, 64n, 65n, 200n),
  keysOnly: fc.boolean(),
  countOnly: fc.constantFrom(false, false, false, true),
  minModRevision: fc.constantFrom(0n, 0n, 300n),
  maxCreateRevision: fc.constantFrom(0n, 0n, 250n),
  sortOrder: fc.constantFrom(Order.NONE, Order.NONE, Order.ASCEND, Order.DESCEND),
  sortTarget: fc.constantFrom(Target.KEY, Target.KEY, Target.MOD),
  ago: fc.constantFrom(0, 0, 100),
});

test("a long answer equals a short one, for any request, whatever happens meanwhile", () => {
  let long = 0;
  fc.assert(
    fc.property(changes, changes, asked, (before, after, { ago, ...fields }) => {
      const revisions = new Revisions();
      for (const [number, value, lease] of before) change(revisions, keyAt(number), contentOf(value), lease);
      const revision = BigInt(Math.max(1, revisions.current - ago));
      const request = { ...all, ...fields, revision };
      const answer = read(revisions.view(), request);
      // For a mutable view, the answer lists the versions found.
      const listed = read(revisions, request);
      const expected = plain(naive(revisions, request));
      if (answer instanceof LongRange) long += 1;
      for (const [number, value, lease] of after) change(revisions, keyAt(number), contentOf(value), lease);
      revisions.compact(revisions.current);
      finish(revisions.sweep());
      for (const each of [answer, sent(answer), listed, sent(listed)]) expect(plain(each)).toEqual(expected);
    }),
    { numRuns: 60 * effort },
  );
  expect(long).toBeGreaterThan(10);
});

/** Looks up each key separately. */
function naive(revisions: Revisions, request: NonNullable<Asked>): RangeResponse {
  const one = (number: number) =>
    read(revisions, { key: bytes(keyAt(number)), revision: request.revision!, keysOnly: request.keysOnly! })
      .kvs;
  const found = Array.from({ length: keysMax + 1 }, (_, number) => one(number)).flat();
  const { limit = 0n, maxCreateRevision = 0n, minModRevision = 0n, sortOrder, sortTarget } = request;
  let kvs = found.filter(
    (kv) =>
      kv.modRevision >= minModRevision &&
      (maxCreateRevision === 0n || kv.createRevision <= maxCreateRevision),
  );
  if (sortTarget === Target.MOD) kvs.sort((a, b) => Number(a.modRevision - b.modRevision));
  if (sortOrder === Order.DESCEND) kvs.reverse();
  if (request.countOnly === true) kvs = [];
  const more = limit > 0n && BigInt(kvs.length) > limit;
  if (more) kvs.length = Number(limit);
  return create(RangeResponseSchema, { kvs, more, count: BigInt(found.length) });
}

test("each piece is a bounded amount of work, even among deleted keys, and a long answer retains little", () => {
  const revisions = filled(20_000, "0123456789");
  for (let number = 100; number < 19_000; number += 1) change(revisions, keyAt(number), undefined);
  const answer = read(revisions.view(), all) as LongRange;
  let [at, most, size] = [revisions.visits.count, 0, 0];
  for (const piece of answer.pieces()) {
    most = Math.max(most, revisions.visits.count - at);
    at = revisions.visits.count;
    size += piece.length;
  }
  expect(size).toBe(1_100);
  expect(most).toBeLessThanOrEqual(512);
  expect(answer.heldBytes).toBeLessThan(2_000);
});
