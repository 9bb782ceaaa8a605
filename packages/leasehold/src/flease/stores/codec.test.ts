import * as fc from "fast-check";
import { expect, test } from "vitest";
import { LeaseholdError } from "../../lease/errors.js";
import { dataText } from "../../lease/tenure-data.js";
import { decodeEntry, encodeEntry, recordBytesMax } from "./codec.js";
import type { EntryRecord } from "./record.js";

const none = {
  leaseOwner: "",
  leaseNumber: 0,
  leaseSequence: 0,
  leaseExpiresWallMs: 0,
  released: false,
  token: 0,
};

const record: EntryRecord = {
  resource: "reports/nightly",
  entry: {
    promisedNumber: 7,
    promisedOwner: "alice.1",
    leaseOwner: "alice.1",
    leaseNumber: 7,
    leaseSequence: 2,
    leaseExpiresWallMs: 1_900_000_000_000.25,
    released: false,
    token: 5,
    barredOwner: "",
  },
  label: "web-1",
  asked: { by: "bob", broken: false, heard: true },
};

const texts = fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 });
const counts = fc.maxSafeNat();
const leases = fc.record({
  leaseOwner: texts,
  leaseNumber: counts,
  leaseSequence: counts,
  leaseExpiresWallMs: fc.double({ min: 0, max: 4e12, noNaN: true }).map((ms) => ms + 0),
  released: fc.boolean(),
  token: counts,
});
const entries = fc
  .tuple(
    fc.record({ promisedNumber: counts, promisedOwner: fc.oneof(fc.constant(""), texts) }),
    fc.oneof(fc.constant(none), leases),
    fc.oneof(fc.constant(""), texts),
  )
  .map(([promise, lease, barredOwner]) => ({ ...promise, ...lease, barredOwner }));
const records: fc.Arbitrary<EntryRecord> = fc.record(
  {
    resource: fc.stringMatching(/^[ -~]{1,60}$/),
    entry: entries,
    label: fc.string(),
    asked: fc.record({ by: fc.string(), broken: fc.boolean(), heard: fc.boolean() }),
    data: fc.constantFrom('{"port":8080}', "7", '["\\"",null]'),
  },
  { requiredKeys: ["resource", "entry"] },
);

test("an entry is a human-readable line", () => {
  expect(new TextDecoder().decode(encodeEntry(record))).toMatch(
    /^leasehold-flease\/1 {"resource":"reports\/nightly","promised":{"number":7,"owner":"alice\.1"},"lease":{"owner":"alice\.1","number":7,"sequence":2,"until":1900000000000\.25,"released":false,"token":5},"label":"web-1","asked":{"by":"bob","broken":false,"heard":true}} [0-9a-f]{8}$/,
  );
});

test("an encoded entry decodes to itself", () => {
  fc.assert(
    fc.property(records, (one) => {
      expect(decodeEntry(encodeEntry(one))).toEqual(one);
    }),
  );
});

test("no damaged byte goes unnoticed", () => {
  const bytes = encodeEntry(record);
  for (const [index, byte] of bytes.entries()) {
    for (const flip of [1, 0x20, 0x80]) {
      const damaged = bytes.with(index, byte ^ flip);
      expect(() => decodeEntry(damaged)).toThrow(LeaseholdError);
    }
  }
  for (let length = 0; length < bytes.length; length += 1)
    expect(() => decodeEntry(bytes.subarray(0, length))).toThrow(LeaseholdError);
});

test.each([
  ["STORE_FOREIGN", "leasehold-flease/2 {}"],
  ["STORE_FOREIGN", "leasehold-delta/1 {}"],
  ["STORE_FOREIGN", "{}"],
  ["STORE_CORRUPT", "leasehold-flease/1 {} 00000000"],
])("what is not ours is %s: %s", (code, text) => {
  expect(() => decodeEntry(new TextEncoder().encode(text))).toThrow(expect.objectContaining({ code }));
});

test("the longest entry fits", () => {
  const owner = `${"a".repeat(64)}.${"f".repeat(16)}`;
  const quotes = (bytes: number) => '"'.repeat(bytes);
  const longest: EntryRecord = {
    resource: quotes(512),
    entry: {
      promisedNumber: Number.MAX_SAFE_INTEGER,
      promisedOwner: owner,
      leaseOwner: owner,
      leaseNumber: Number.MAX_SAFE_INTEGER,
      leaseSequence: Number.MAX_SAFE_INTEGER,
      leaseExpiresWallMs: 9_999_999_999_999.123,
      released: false,
      token: Number.MAX_SAFE_INTEGER,
      barredOwner: owner,
    },
    label: quotes(256),
    asked: { by: quotes(256), broken: false, heard: false },
    data: dataText("x".repeat(1_022)),
  };
  expect(encodeEntry(longest).length).toBeLessThanOrEqual(recordBytesMax);
});
