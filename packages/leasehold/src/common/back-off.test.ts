import { expect, test } from "vitest";
import { backOffBoundMs, backOffMs } from "./back-off.js";

const drawn = (value: number) => ({ next: () => value });

test("the bound doubles with each failure, up to its maximum", () => {
  const bounds = [0, 1, 2, 3, 4, 5].map((failures) => backOffBoundMs(failures, 50, 1_000));
  expect(bounds).toEqual([50, 100, 200, 400, 800, 1_000]);
});

test("the bound is its maximum after any number of failures, and 0 where its base is", () => {
  expect(backOffBoundMs(1e9, 1, 2_000)).toBe(2_000);
  expect(backOffBoundMs(1e9, 0, 2_000)).toBe(0);
});

test("the pause is spread evenly from 0 to its bound", () => {
  expect([0, 0.25, 0.75].map((value) => backOffMs(drawn(value), 2, 50, 1_000))).toEqual([0, 50, 150]);
});
