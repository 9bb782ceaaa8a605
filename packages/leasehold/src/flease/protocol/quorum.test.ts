import * as fc from "fast-check";
import { expect, test } from "vitest";
import { withFaults } from "../../../../../test/planted/switches.js";
import { cellOf, sizeOf } from "./quorum.js";

test("the size of a set is its number of bits, also of all 32", () => {
  fc.assert(
    fc.property(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), (set) => {
      expect(sizeOf(set)).toBe((set >>> 0).toString(2).replaceAll("0", "").length);
    }),
  );
  expect([sizeOf(0), sizeOf(-1), sizeOf(1 << 30)]).toEqual([0, 32, 1]);
});

const majorityOf = (size: number) => cellOf(Array.from({ length: size }, (_, index) => index)).majority;

test("two quorums of the planted size need not meet (P20)", () => {
  expect(withFaults({ smallQuorum: true }, () => 2 * majorityOf(3))).toBeLessThan(3);
});
