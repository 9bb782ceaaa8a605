import fc from "fast-check";
import { expect, test } from "vitest";
import { compareValues } from "./range.js";
import { finish } from "./steps.js";
import { bytesOfValue, keep, owned } from "./values.js";

const lengths = [0, 1, 2, 1_023, 1_024, 1_025, 5_000];

test("a value is read as it was stored, for any bytes and length", () => {
  for (const length of lengths) {
    const bytes = Uint8Array.from({ length }, (_, index) => index * 7);
    const value = keep(bytes);
    expect(value.length).toBe(length);
    expect(new Uint8Array(bytesOfValue(value))).toEqual(bytes);
  }
});

test("values are ordered by their bytes, whichever form they are kept in", () => {
  const part = fc.uint8Array({ maxLength: 3 });
  const long = fc.constantFrom(0, 1_023, 1_024);
  const value = fc
    .tuple(part, long, part)
    .map(([head, zeros, tail]) => [...head, ...Array(zeros).fill(0), ...tail]);
  fc.assert(
    fc.property(value, value, (one, other) => {
      const [a, b] = [Uint8Array.from(one), Uint8Array.from(other)];
      const found = compareValues(keep(a), keep(b));
      const difference = typeof found === "number" ? found : finish(found);
      expect(Math.sign(difference)).toBe(Buffer.compare(a, b));
      // A comparison has the client's bytes on one side.
      const asked = compareValues(keep(a), b);
      expect(Math.sign(typeof asked === "number" ? asked : finish(asked))).toBe(Buffer.compare(a, b));
    }),
  );
});

test("keeping a part of a large request does not retain the whole request", () => {
  const request = new Uint8Array(1_000_000);
  expect(keep(request.subarray(0, 10))).toBe("\0".repeat(10));
  const part = keep(request.subarray(0, 2_000));
  expect((part as Uint8Array).buffer.byteLength).toBe(2_000);
  expect(owned(request.subarray(10)).buffer).toBe(request.buffer);
});
