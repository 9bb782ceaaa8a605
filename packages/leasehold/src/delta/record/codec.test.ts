import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeRecord, encodeRecord } from "./codec.js";
import { crc32c } from "./crc32c.js";
import { decodeFarmCell, encodeFarmCell } from "../farm/farm-cell.js";
import { encodeEnvelope } from "./envelope.js";
import type { DeltaRecord } from "./record.js";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (line: Uint8Array) => new TextDecoder().decode(line);

const record: DeltaRecord = {
  resource: "reports/nightly",
  epoch: 7n,
  number: 42n,
  writer: "alice.1f",
  nonce: 3,
  state: "held",
  leaseMs: 15_000,
  delayMs: 100,
};

const name = fc
  .string({ unit: "binary", minLength: 1, maxLength: 40 })
  .filter((value) => !/\p{Cc}/u.test(value));
const big = fc.bigInt({ min: 0n, max: 2n ** 90n });
const records: fc.Arbitrary<DeltaRecord> = fc.record(
  {
    resource: name,
    epoch: big,
    number: big,
    writer: name,
    nonce: fc.nat(),
    state: fc.constantFrom("held", "free"),
    leaseMs: fc.nat(),
    delayMs: fc.double({ min: 0, max: 1e6, noNaN: true }).map((value) => value + 0),
    label: name,
    readers: fc.array(name, { maxLength: 4 }),
    asked: fc.record({ by: name, broken: fc.boolean() }),
    data: fc.constantFrom('{"port":8080}', "7", '["\\"",null]'),
  },
  { requiredKeys: ["resource", "epoch", "number", "writer", "nonce", "state", "leaseMs", "delayMs"] },
);

const code = (decode: () => unknown) => {
  try {
    decode();
    return "decoded";
  } catch (error) {
    return (error as { code?: string }).code;
  }
};

test("the checksum is Castagnoli's", () => {
  expect(crc32c(bytes("123456789"))).toBe(0xe306_9283);
  expect(crc32c(new Uint8Array(32))).toBe(0x8a91_36aa);
});

describe("a record", () => {
  test("is a human-readable line", () => {
    expect(text(encodeRecord(record))).toMatch(
      /^leasehold-delta\/1 \{"resource":"reports\/nightly","epoch":"7","number":"42","writer":"alice\.1f","nonce":3,"state":"held","leaseMs":15000,"delayMs":100\} [0-9a-f]{8}$/,
    );
  });

  test("has the data of its tenure as JSON, and is damaged when the data is invalid", () => {
    const line = text(encodeRecord({ ...record, data: '{"port":8080}' }));
    expect(line).toContain('"delayMs":100,"data":{"port":8080}}');
    const json = JSON.stringify({ ...record, epoch: "7", number: "42" }).slice(0, -1);
    const nested = "[".repeat(50_000) + "]".repeat(50_000);
    for (const data of ['{"__proto__":1}', '{ "a":1}', '{"a":1,"a":1}', `"${"x".repeat(1_023)}"`, nested]) {
      const envelope = encodeEnvelope("leasehold-delta/1", `${json},"data":${data}}`);
      expect(code(() => decodeRecord(envelope))).toBe("STORE_CORRUPT");
    }
  });

  test("decodes to what was encoded", () => {
    fc.assert(
      fc.property(records, (each) => {
        expect(decodeRecord(encodeRecord(each))).toEqual(each);
      }),
    );
  });

  test("is refused with any one bit changed", () => {
    const line = encodeRecord({ ...record, label: "nightly on ärger", asked: { by: "bob.2", broken: true } });
    for (let bit = 0; bit < 8 * line.length; bit += 1) {
      const damaged = line.slice();
      damaged[bit >> 3]! ^= 1 << (bit & 7);
      expect(`bit ${bit}: ${code(() => decodeRecord(damaged))}`).toMatch(/: STORE_(FOREIGN|CORRUPT)$/);
    }
  });

  test("is refused when it is truncated anywhere, has trailing bytes, or is torn", () => {
    fc.assert(
      fc.property(records, records, fc.double({ min: 0, max: 1, noNaN: true }), (one, other, at) => {
        const [a, b] = [encodeRecord(one), encodeRecord(other)];
        const cut = Math.min(a.length - 1, Math.floor(at * a.length));
        expect(code(() => decodeRecord(a.slice(0, cut)))).toMatch(/^STORE_(FOREIGN|CORRUPT)$/);
        expect(code(() => decodeRecord(Uint8Array.from([...a, 0])))).toBe("STORE_CORRUPT");
        const torn = Uint8Array.from([...a.slice(0, cut), ...b.slice(cut)]);
        const isWhole = text(torn) === text(a) || text(torn) === text(b);
        expect(code(() => decodeRecord(torn))).toMatch(isWhole ? /^decoded$/ : /^STORE_(FOREIGN|CORRUPT)$/);
      }),
    );
  });

  test.each([
    ["nothing", bytes(""), "STORE_FOREIGN"],
    ["another program's data", bytes('{"lock":"mine"}'), "STORE_FOREIGN"],
    ["a newer format", encodeEnvelope("leasehold-delta/2", "{}"), "STORE_FOREIGN"],
    ["zeros", new Uint8Array(512), "STORE_FOREIGN"],
    ["no JSON", encodeEnvelope("leasehold-delta/1", "{"), "STORE_CORRUPT"],
    ["JSON of something else", encodeEnvelope("leasehold-delta/1", "[1]"), "STORE_CORRUPT"],
    ["null", encodeEnvelope("leasehold-delta/1", "null"), "STORE_CORRUPT"],
    [
      "another order of fields",
      encodeEnvelope("leasehold-delta/1", JSON.stringify({ nonce: 1, resource: "a" })),
      "STORE_CORRUPT",
    ],
  ])("%s is refused", (_, content, expected) => {
    expect(code(() => decodeRecord(content))).toBe(expected);
  });

  test("of another version is refused with that version", () => {
    expect(() => decodeRecord(encodeEnvelope("leasehold-delta/2", "{}"))).toThrow(
      "its format is leasehold-delta/2, of another version of Leasehold; this version supports leasehold-delta/1",
    );
  });

  test("with an invalid field is refused, although its checksum is right", () => {
    const fields = JSON.parse(text(encodeRecord(record)).slice("leasehold-delta/1 ".length, -9)) as object;
    for (const wrong of [
      { resource: "" },
      { resource: "a\nb" },
      { epoch: "-1" },
      { epoch: 7 },
      { number: "1e3" },
      { epoch: "9".repeat(31) },
      { writer: "" },
      { nonce: -1 },
      { nonce: 1.5 },
      { state: "taken" },
      { leaseMs: -1 },
      { leaseMs: null },
      { delayMs: 1e300 },
      { asked: {} },
      { readers: "bob" },
      { unknown: 1 },
    ]) {
      const line = encodeEnvelope("leasehold-delta/1", JSON.stringify({ ...fields, ...wrong }));
      expect([wrong, code(() => decodeRecord(line))]).toEqual([wrong, "STORE_CORRUPT"]);
    }
  });
});

test("a farm's cell decodes to what was encoded, and damaged ones are refused", () => {
  const cell = {
    id: "a",
    state: "ready",
    generation: 2,
    farm: ["a", "b", "c"],
    leaseMsMax: 15_000,
    delayMsMax: 100,
    epochFloor: 7n,
    epochMax: 1n << 60n,
    since: 1,
    waitedMs: 250,
  } as const;
  const line = encodeFarmCell(cell);
  expect(decodeFarmCell(line)).toEqual(cell);
  for (let bit = 0; bit < 8 * line.length; bit += 1) {
    const damaged = line.slice();
    damaged[bit >> 3]! ^= 1 << (bit & 7);
    expect(code(() => decodeFarmCell(damaged))).toMatch(/^STORE_(FOREIGN|CORRUPT)$/);
  }
  expect(code(() => decodeFarmCell(encodeRecord(record)))).toBe("STORE_FOREIGN");
  expect(code(() => decodeFarmCell(encodeEnvelope("leasehold-farm/2", '{"id":"a"}')))).toBe("STORE_CORRUPT");
});
