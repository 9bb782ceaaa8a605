import { expect, test } from "vitest";
import { append, few, greatest, least } from "./lists.js";

const million = Array.from({ length: 1_000_000 }, (_, index) => index);

test("a list of any length has a greatest and a least value, and can be appended to another", () => {
  expect([greatest(million), least(million)]).toEqual([999_999, 0]);
  expect([greatest([]), greatest([], 5), greatest([3], 5), least([])]).toEqual([-Infinity, 5, 5, Infinity]);
  const list = [7];
  append(list, million);
  expect(list).toHaveLength(1_000_001);
});

test("a list too long to become the arguments of a call is refused", () => {
  expect(Math.max(...few([1, 2]))).toBe(2);
  expect(() => few(million)).toThrow(RangeError);
});
