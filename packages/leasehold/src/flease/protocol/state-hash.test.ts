import * as fc from "fast-check";
import { expect, test } from "vitest";
import { StateHash } from "./state-hash.js";

const value = fc.oneof(fc.string(), fc.boolean(), fc.double({ noNaN: true }), fc.integer());
type Value = string | boolean | number;

function digestOf(values: readonly Value[]): string {
  const hash = new StateHash();
  for (const each of values) {
    if (typeof each === "string") hash.text(each);
    else if (typeof each === "number") hash.number(each);
    else hash.flag(each);
  }
  return hash.digest();
}

test("the digest is a function of the input: 64 bits in hexadecimal", () => {
  fc.assert(
    fc.property(fc.array(value), (values) => {
      expect(digestOf(values)).toBe(digestOf([...values]));
      expect(digestOf(values)).toMatch(/^[0-9a-f]{16}$/);
    }),
  );
});

test("an added or changed value gives another digest", () => {
  fc.assert(
    fc.property(fc.array(fc.integer(), { minLength: 1 }), fc.nat(), fc.integer(), (values, place, other) => {
      const index = place % values.length;
      const changed = values.with(index, other);
      expect(digestOf(changed) === digestOf(values)).toBe(values[index] === other);
      expect(digestOf([...values, other])).not.toBe(digestOf(values));
    }),
  );
});

test("small numbers in few places do not collide", () => {
  const digests = new Set<string>();
  for (let first = 0; first < 100; first += 1)
    for (let second = 0; second < 100; second += 1) digests.add(digestOf([first, second]));
  expect(digests.size).toBe(10_000);
});
