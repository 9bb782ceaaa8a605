import fc from "fast-check";
import { expect, test } from "vitest";
import { JsonValues } from "./json-values.js";

const newValues = (bytesMax = 1_000_000) => new JsonValues(bytesMax, "too long");

test("objects in any pieces are returned whole and in order", () => {
  const object = fc.dictionary(fc.string(), fc.oneof(fc.string({ unit: "binary" }), fc.jsonValue()));
  const spaces = fc.constantFrom("", " ", "\n", "\r\n\t");
  const sizes = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 });
  fc.assert(
    fc.property(fc.array(fc.tuple(object, spaces)), sizes, (all, cuts) => {
      const bytes = Buffer.from(all.map(([value, space]) => JSON.stringify(value) + space).join(""));
      const values = newValues();
      const found: string[] = [];
      for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
        const size = cuts[turn % cuts.length]!;
        found.push(...values.take(bytes.subarray(at, at + size)));
        at += size;
      }
      values.end();
      expect(found.map((text) => text.trim())).toEqual(all.map(([value]) => JSON.stringify(value)));
    }),
    { numRuns: 200 },
  );
});

test("a text that is not an object, does not end or is too long is refused", () => {
  expect(() => newValues().take(Buffer.from("[1]"))).toThrow("invalid character");
  const open = newValues();
  open.take(Buffer.from('{"a":{"b":"}'));
  expect(() => open.end()).toThrow("unexpected EOF");
  const long = newValues(10);
  long.take(Buffer.from('{"a":"'));
  long.take(Buffer.from("xxxx"));
  expect(() => long.take(Buffer.from("x"))).toThrow("too long");
});

test("a body in single bytes takes linear time", () => {
  const values = newValues();
  const bytes = Buffer.from(`{"a":"${"x".repeat(200_000)}"}`);
  const found: string[] = [];
  let most = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    found.push(...values.take(bytes.subarray(at, at + 1)));
    most = Math.max(most, values.heldBytes);
  }
  expect(found).toEqual([bytes.toString()]);
  expect([most <= 2 * bytes.length, values.heldBytes]).toEqual([true, 0]);
});
