import * as fc from "fast-check";
import { expect, it } from "vitest";
import { SharedWall, SimClock, startWallMs } from "./clocks.js";

const rate = fc.oneof(fc.constant(0), fc.double({ min: 0.1, max: 10, noNaN: true }));

it("a steady clock never goes back, whatever its rate does, and a wake-up finds its moment reached", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.double({ min: 0, max: 10_000, noNaN: true }), rate)),
      fc.double({ min: 0, max: 50_000, noNaN: true }),
      (changes, waitMs) => {
        const clock = new SimClock(new SharedWall(), 5_000, false);
        let nowMs = 0;
        for (const [afterMs, to] of changes) {
          const before = clock.monoAt(nowMs);
          nowMs += afterMs;
          expect(clock.monoAt(nowMs)).toBeGreaterThanOrEqual(before);
          clock.setRate(nowMs, to);
        }
        const due = clock.monoAt(nowMs) + waitMs;
        const wakeMs = clock.timeOfMono(due);
        const reached = clock.rate === 0 ? wakeMs === Infinity : clock.monoAt(wakeMs) >= due;
        expect(reached).toBe(true);
      },
    ),
  );
});

it("wall clocks step together, each with its own offset, in whole milliseconds if they are so", () => {
  const shared = new SharedWall();
  const [fine, coarse] = [new SimClock(shared, 0, false), new SimClock(shared, 0, true)];
  fine.offsetMs = 0.25;
  coarse.offsetMs = 0.75;
  expect([fine.wallAt(10), coarse.wallAt(10)]).toEqual([startWallMs + 10.25, startWallMs + 10]);
  shared.offsetMs = -1_000;
  expect([fine.wallAt(10), coarse.wallAt(10)]).toEqual([startWallMs - 989.75, startWallMs - 990]);
});
