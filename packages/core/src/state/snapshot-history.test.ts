import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { SnapshotPieceSchema } from "leasehold/etcd/gen/leasehold/snapshot_pb.js";
import { bytesOf } from "./keys.js";
import type { Version } from "./revisions.js";
import { bytesOfValue, keep } from "./values.js";
import { HistoryWriter, readHistory } from "./snapshot-history.js";

const number = fc.oneof(fc.constant(0), fc.nat(300), fc.maxSafeNat());
const key = fc.uint8Array({ maxLength: 40 }).map((bytes) => String.fromCharCode(...bytes));
const version = fc.record({
  modified: number,
  sub: number,
  created: number,
  version: number,
  value: fc.uint8Array({ maxLength: 300 }).map(keep),
  lease: fc.oneof(
    fc.constantFrom(0n, -1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 56n - 1n, 2n ** 56n, 2n ** 63n - 1n),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  ),
});
const pieces = fc.array(
  fc.record({
    case: fc.constantFrom("history" as const, "continued" as const),
    key,
    versions: fc.array(version, { maxLength: 4 }),
  }),
  { maxLength: 4 },
);

/** As the generated code represents them. */
function generated(versions: readonly Omit<Version, "key">[]) {
  return versions.map(({ modified, sub, created, version: count, value, lease }) => ({
    modified: BigInt(modified),
    sub: BigInt(sub),
    created: BigInt(created),
    version: BigInt(count),
    value: Uint8Array.from(bytesOfValue(value)),
    lease,
  }));
}

test("versions are written as the generated code does, and read back the same", () => {
  fc.assert(
    fc.property(pieces, (all) => {
      const writer = new HistoryWriter();
      for (const piece of all) {
        const versions = piece.versions.map((one) => ({ key: piece.key, ...one }));
        const value = { key: bytesOf(piece.key), versions: generated(piece.versions) };
        const bytes = toBinary(
          SnapshotPieceSchema,
          create(SnapshotPieceSchema, { body: { case: piece.case, value } }),
        );
        expect(writer.write(piece.case, piece.key, versions)).toEqual(bytes);
        expect(readHistory(bytes)).toEqual({ ...piece, versions });
      }
    }),
  );
});

test("invalid bytes are an error, or read as the generated code does", () => {
  fc.assert(
    fc.property(pieces, fc.nat(), fc.nat(255), fc.boolean(), (all, at, byte, isCut) => {
      const writer = new HistoryWriter();
      for (const { case: body, key: name, versions } of all) {
        const written = writer.write(
          body,
          name,
          versions.map((one) => ({ key: name, ...one })),
        );
        const bytes = isCut ? written.subarray(0, at % written.length) : written;
        if (!isCut) bytes[at % bytes.length] = byte;
        let found;
        try {
          found = readHistory(bytes);
        } catch {
          continue;
        }
        if (found === undefined) continue;
        const piece = fromBinary(SnapshotPieceSchema, bytes).body;
        expect(found.case).toBe(piece.case);
      }
    }),
    { numRuns: 1_000 },
  );
});
