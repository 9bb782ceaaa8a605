import { expect, test } from "vitest";
import { Leases } from "../state/leases.js";
import { LeaderTracker } from "./lease-tracker.js";

const ttlSeconds = 10;
const extraMs = 1_000;

function granted(count: number): Leases {
  const leases = new Leases();
  for (let id = 1; id <= count; id += 1) leases.grant(BigInt(id), ttlSeconds);
  return leases;
}

function begun(leases: Leases, pieces: number): LeaderTracker {
  const tracker = new LeaderTracker(leases, 0, extraMs);
  let turns = 0;
  for (; tracker.isBeginning; turns += 1) expect(tracker.goOn(pieces)).toBeLessThanOrEqual(pieces);
  expect(turns).toBe(Math.floor(leases.size / pieces) + 1);
  return tracker;
}

test("a leader that starts to track in pieces gives each lease the same time as if all at once", () => {
  const leases = granted(1_000);
  leases.get(7n)!.leftMs = 3_000;
  const tracker = begun(leases, 64);
  expect(tracker.takeDue(3_999, 2_000)).toEqual([]);
  expect(tracker.takeDue(4_000, 2_000)).toEqual([7n]);
  expect(tracker.takeDue(10_999, 2_000)).toEqual([]);
  expect(tracker.takeDue(11_000, 2_000)).toHaveLength(999);
});

test("a requested lease is tracked from the beginning with its full time, and keeps its refresh", () => {
  const leases = granted(1_000);
  leases.get(900n)!.leftMs = 3_000;
  const tracker = new LeaderTracker(leases, 0, extraMs);
  expect(tracker.goOn(10)).toBe(10);
  expect(tracker.isWrittenShort(900n, 0)).toBe(true);
  expect(tracker.leftMs(500n, 100)).toBe(10_900);
  expect(tracker.refresh(999n, 5_000)).toBe(ttlSeconds);
  expect(tracker.refresh(1_001n, 5_000)).toBe(0);
  while (tracker.isBeginning) tracker.goOn(10);
  expect(tracker.leftMs(999n, 5_000)).toBe(10_000);
  expect(tracker.takeDue(4_000, 2_000)).toEqual([900n]);
});

test("a lease that ends during the start is not tracked, and one granted anew has its own time", () => {
  const leases = granted(1_000);
  const tracker = new LeaderTracker(leases, 0, extraMs);
  tracker.goOn(10);
  for (const id of [800n, 900n]) {
    leases.remove(id);
    tracker.ended(id);
  }
  tracker.granted(leases.grant(900n, 60), 2_000);
  while (tracker.isBeginning) tracker.goOn(10);
  expect(tracker.leftMs(800n, 2_000)).toBeUndefined();
  expect(tracker.refresh(800n, 2_000)).toBe(0);
  expect(tracker.leftMs(900n, 2_000)).toBe(60_000);
});

test("remaining times of all leases are visited in pieces", () => {
  const leases = granted(50_000);
  leases.get(40_000n)!.leftMs = 2_000;
  const tracker = begun(leases, 1_024);
  for (let id = 1n; id <= 50_000n; id += 1n) if (id !== 45_000n) tracker.refresh(id, 5_000);
  const pieces: (bigint[] | undefined)[] = [];
  do pieces.push(tracker.shorter(5_000, 3_000, 100)?.map(({ id }) => id));
  while (pieces.at(-1) !== undefined);
  expect(pieces.length).toBeGreaterThan(5);
  expect(pieces.flat()).toEqual([45_000n, undefined]);
});
