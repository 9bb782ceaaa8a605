import { expect, test } from "vitest";
import { connectionsMax } from "./connections-max.js";

const gibibyte = 1024 ** 3;

test("connections leave files for other uses, and three quarters of the memory", () => {
  expect(connectionsMax(1_024, 16 * gibibyte)).toBe(768);
  expect(connectionsMax(1_000_000, gibibyte)).toBe(2_048);
  expect(connectionsMax(Number.POSITIVE_INFINITY, gibibyte)).toBe(2_048);
  expect(connectionsMax(1_000_000, 1)).toBe(64);
  expect(() => connectionsMax(300, gibibyte)).toThrow(/may open 300 files, and needs 320: see "ulimit -n"/);
  expect(connectionsMax()).toBeGreaterThanOrEqual(64);
});
