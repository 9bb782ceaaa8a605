import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalSettings, fleaseSettings, settingsAdvice } from "./settings.js";
import type { FleaseSettingsInput } from "./settings.js";
import { LeaseholdError } from "../../lease/errors.js";

const input: FleaseSettingsInput = {
  members: ["a", "b", "c"],
  maxClockSkewMs: 100,
  ttlMaxMs: 5_000,
  rpcTimeoutMs: 200,
};

const manyMembers = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`);

function refusal(more: Partial<FleaseSettingsInput>): string {
  try {
    fleaseSettings({ ...input, ...more });
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === "INVALID_CONFIG") return error.message;
    throw error;
  }
  return "accepted";
}

test("derived settings are filled in", () => {
  const settings = fleaseSettings({ ...input, members: ["c", "a", "b"] });
  expect(settings.members).toEqual(["a", "b", "c"]);
  expect(settings.mutualRateError).toBeCloseTo(0.2 / 0.9, 12);
  expect(settings.waitWallMs).toBe(5_300);
  expect(settings.waitRateMs).toBe(5_000 * (1 + settings.mutualRateError));
  expect(settings.floorLeadMs).toBe(200);
  expect(settings.ttlMinMs).toBe(1_001);
});

test.each<[string, Partial<FleaseSettingsInput>, string[]]>([
  ["ε ≥ 2 ms", { maxClockSkewMs: 1 }, ["maxClockSkew", "≥ 2 ms", "is 1 ms"]],
  [
    "tmax > ε",
    { maxClockSkewMs: 5_000 },
    ["ttlMax > maxClockSkew", "ttlMax is 5000 ms", "maxClockSkew 5000 ms"],
  ],
  [
    "4·rpcTimeout + 2ε < tmax",
    { rpcTimeoutMs: 1_200 },
    ["4·rpcTimeout + 2·maxClockSkew < ttlMax", "4·1200 ms + 2·100 ms = 5000 ms", "ttlMax is 5000 ms"],
  ],
  ["rpcTimeout > 0", { rpcTimeoutMs: 0 }, ["rpcTimeout > 0", "0 ms"]],
  ["0 ≤ ρ < 0.5", { clockRateError: 0.5 }, ["clockRateError", "below 0.5", "is 0.5"]],
  ["ρ ≥ 0", { clockRateError: -0.001 }, ["clockRateError", "at least 0", "is -0.001"]],
  ["numbers", { ttlMaxMs: Number.NaN }, ["ttlMaxMs", "NaN"]],
  ["finite numbers", { ttlMaxMs: Infinity }, ["ttlMaxMs", "Infinity"]],
  ["some member", { members: [] }, ["at least one member"]],
  ["at most 300 members", { members: manyMembers(301), cellSize: 3 }, ["300", "301"]],
  ["cells of at most 31", { members: manyMembers(40), cellSize: 32 }, ["cellSize", "31", "32"]],
  ["each member once", { members: ["a", "b", "a"] }, ['"a"', "twice"]],
  ["cells of at most all members", { cellSize: 4 }, ["cellSize", "3", "is 4"]],
  ["cells of at least one member", { cellSize: 0 }, ["cellSize", "is 0"]],
  ["cells of whole members", { cellSize: 1.5 }, ["cellSize", "is 1.5"]],
  ["names of members", { members: ["a", "b.c"] }, ['"b.c"', "1 to 64 characters"]],
])("refuses what breaks %s, and says so with the numbers", (_rule, more, parts) => {
  const message = refusal(more);
  for (const part of parts) expect(message).toContain(part);
});

test("each bound itself is accepted", () => {
  expect(refusal({ maxClockSkewMs: 2 })).toBe("accepted");
  expect(refusal({ rpcTimeoutMs: 1_199 })).toBe("accepted");
  expect(refusal({ members: Array.from({ length: 31 }, (_, index) => `m${index}`) })).toBe("accepted");
});

test("the waits after a start, and the floor, are what section 3.1 demands, whatever is chosen", () => {
  const maxClockSkewMs = fc.integer({ min: 2, max: 10_000 });
  const clockRateError = fc.double({ min: 0, max: 0.49, noNaN: true });
  const ttlMaxMs = fc.integer({ min: 25_000, max: 3_600_000 });
  fc.assert(
    fc.property(maxClockSkewMs, clockRateError, ttlMaxMs, (ε, ρ, tmax) => {
      const settings = fleaseSettings({ ...input, maxClockSkewMs: ε, clockRateError: ρ, ttlMaxMs: tmax });
      const { waitWallMs, waitRateMs, floorLeadMs } = settings;
      expect(waitWallMs).toBeGreaterThanOrEqual(tmax + 2 * ε);
      expect(waitRateMs).toBeGreaterThanOrEqual(tmax * (1 + (2 * ρ) / (1 - ρ)));
      expect(floorLeadMs).toBeGreaterThanOrEqual(2 * ε);
      expect(floorLeadMs).toBeLessThanOrEqual(waitWallMs - ε);
    }),
  );
});

test("advises leases of at least ten times the skew", () => {
  expect(settingsAdvice(fleaseSettings(input))).toEqual([]);
  const advice = settingsAdvice(fleaseSettings({ ...input, maxClockSkewMs: 501 }));
  expect(advice).toHaveLength(1);
  expect(advice[0]).toContain("501 ms");
});

test("settings that must be alike have one text, in whatever order members are listed", () => {
  const text = canonicalSettings(fleaseSettings(input));
  expect(canonicalSettings(fleaseSettings({ ...input, members: ["b", "c", "a"] }))).toBe(text);
  const others: Partial<FleaseSettingsInput>[] = [
    { maxClockSkewMs: 101 },
    { ttlMaxMs: 5_001 },
    { clockRateError: 0.002 },
    { members: ["a", "b", "d"] },
  ];
  for (const other of others)
    expect(canonicalSettings(fleaseSettings({ ...input, ...other }))).not.toBe(text);
});
