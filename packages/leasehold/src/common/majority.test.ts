import { expect, test } from "vitest";
import { majorityOf } from "./majority.js";

test("any two majorities have a member in common, and two smaller sets need not", () => {
  for (let count = 1; count <= 1_000; count += 1) {
    expect(2 * majorityOf(count)).toBeGreaterThan(count);
    expect(2 * (majorityOf(count) - 1)).toBeLessThanOrEqual(count);
  }
});

test("the majority of no members is more than none", () => {
  expect(majorityOf(0)).toBeGreaterThan(0);
});
