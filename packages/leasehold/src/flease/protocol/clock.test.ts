import * as fc from "fast-check";
import { expect, test } from "vitest";
import { readBothClocks } from "../../common/both-clocks.js";
import { FleaseClock, emptyReading } from "./clock.js";
import { withFaults } from "../../../../../test/planted/switches.js";

const read = (clock: FleaseClock, mono: number, wall: number) => clock.read(mono, wall, emptyReading());
const disagree = (clock: FleaseClock, mono: number, wall: number) => read(clock, mono, wall).clocksDisagree;

/** Steps of the steady clock, and the wall clock's offset from it. */
const history = fc.array(fc.tuple(fc.nat(5_000), fc.integer({ min: -500, max: 500 })), { maxLength: 40 });

/** I13: whatever the two clocks do, lo ≤ M ≤ hi, and hi never moves back. */
function boundsHold(steps: readonly (readonly [number, number])[]): boolean {
  const clock = new FleaseClock(1_000, 50_000, 10, 0);
  let mono = 1_000;
  let hi = -Infinity;
  for (const [stepMs, aheadMs] of steps) {
    mono += stepMs;
    const now = read(clock, mono, mono + 49_000 + aheadMs);
    const carried = mono + 49_000; // Without slewing M is extrapolated from the first anchor.
    if (now.lo > carried || now.lo > now.wall || now.hi < carried || now.hi < now.wall || now.hi < hi)
      return false;
    hi = now.hi;
  }
  return true;
}

test("lo is below and hi above both clocks, and hi never moves back (I13)", () => {
  expect(() => fc.assert(fc.property(history, boundsHold))).not.toThrow();
});

test("a clock with its bounds swapped breaks that property", () => {
  withFaults({ clockBoundsSwapped: true }, () =>
    expect(fc.check(fc.property(history, boundsHold), { seed: 1 }).failed).toBe(true),
  );
});

test("lo follows a wall clock that steps back", () => {
  const run = () => {
    const clock = new FleaseClock(0, 10_000, 10, 0);
    read(clock, 100, 10_100);
    return read(clock, 200, 9_000).lo;
  };
  expect(run()).toBe(9_000);
  expect(withFaults({ lowerClockMonotone: true }, run)).toBe(10_100);
});

test("hi remembers a wall clock that stepped forward and back", () => {
  const clock = new FleaseClock(0, 10_000, 10, 0);
  expect(read(clock, 100, 12_000).hi).toBe(12_000);
  expect(read(clock, 200, 10_200).hi).toBe(12_000);
  expect(read(clock, 200, 10_200).lo).toBe(10_200);
});

test("with wall clocks within ε, no lower bound is more than ε above another's upper bound", () => {
  const step = fc.tuple(fc.nat(1_000), fc.nat(2_000), fc.nat(2_000), fc.nat(10), fc.nat(10));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const skewMs = 10;
      const [first, second] = [
        new FleaseClock(0, 5_000, skewMs, 0.001),
        new FleaseClock(0, 5_000, skewMs, 0.001),
      ];
      let [wall, firstMono, secondMono] = [5_000, 0, 0];
      for (const [stepMs, firstStep, secondStep, firstAhead, secondAhead] of steps) {
        // Steady clocks run wild; wall clocks stay within ε of each other.
        [wall, firstMono, secondMono] = [wall + stepMs, firstMono + firstStep, secondMono + secondStep];
        const left = read(first, firstMono, wall + firstAhead);
        const right = read(second, secondMono, wall + secondAhead);
        expect(left.lo - right.hi).toBeLessThanOrEqual(skewMs);
        expect(right.lo - left.hi).toBeLessThanOrEqual(skewMs);
      }
    }),
  );
});

test("clocks that are more than ε/2 apart disagree once that has lasted a second", () => {
  const clock = new FleaseClock(0, 10_000, 100, 0);
  expect(disagree(clock, 0, 10_000)).toBe(false);
  expect(disagree(clock, 1_000, 11_051)).toBe(false);
  expect(disagree(clock, 1_999, 12_050)).toBe(false);
  expect(clock.peek(2_000, 12_051, emptyReading()).clocksDisagree).toBe(true);
  expect(disagree(clock, 2_000, 12_051)).toBe(true);
});

test("a glitch is no disagreement, nor is being ε/2 apart", () => {
  const clock = new FleaseClock(0, 10_000, 100, 0);
  for (let mono = 0; mono <= 5_000; mono += 100) expect(disagree(clock, mono, mono + 10_050)).toBe(false);
  const glitching = new FleaseClock(0, 10_000, 100, 0);
  for (let mono = 0; mono <= 5_000; mono += 900) {
    const wall = mono + 10_000 - (mono % 1_800 === 0 ? 90 : 0);
    expect(disagree(glitching, mono, wall)).toBe(false);
  }
});

test("more than ε apart at a single reading, in either direction, is a disagreement until a restart, and observers see it too", () => {
  for (const aheadMs of [101, -101, 3_600_000, -3_600_000]) {
    const clock = new FleaseClock(0, 10_000, 100, 0.001);
    expect(disagree(clock, 1_000, 11_000)).toBe(false);
    expect(clock.peek(1_100, 11_100 + aheadMs, emptyReading()).clocksDisagree).toBe(true);
    expect(disagree(clock, 1_100, 11_100)).toBe(false);
    expect(disagree(clock, 1_200, 11_200 + aheadMs)).toBe(true);
    expect(clock.disagreedByMs).toBeCloseTo(Math.abs(aheadMs), 0);
    // Two clocks that meet again have still disagreed in between.
    expect(disagree(clock, 1_300, 11_300)).toBe(true);
    clock.restart(1_400, 11_400);
    expect(disagree(clock, 1_500, 11_500)).toBe(false);
  }
});

test("a suspended machine finds out when it wakes, whatever its wall clock shows, unless that agrees with the steady one", () => {
  const suspended = () => {
    const clock = new FleaseClock(0, 10_000, 100, 0.001);
    read(clock, 1_000, 11_000);
    return clock;
  };
  // Four wall clocks after 20 s of sleep in which the steady clock stood still: one that is right, one 8 s
  // slow, one set back by more than the sleep, and one set back by exactly as much.
  for (const wall of [31_000, 23_000, 5_000]) expect(disagree(suspended(), 1_000, wall)).toBe(true);
  expect(disagree(suspended(), 1_000, 11_050)).toBe(false);
  withFaults({ onlyStepBackEndsHoldsAtOnce: true }, () =>
    expect([31_000, 23_000, 5_000].map((wall) => disagree(suspended(), 1_000, wall))).toEqual([
      false,
      false,
      true,
    ]),
  );
});

test("clocks that moved apart disagree, even if no reading was taken for long and the anchor could have followed", () => {
  const clock = new FleaseClock(0, 10_000, 100, 0.1);
  // A day without a reading; 0.05 % of it would be 43 s.
  expect(disagree(clock, 86_400_000, 86_410_101)).toBe(true);
});

test("a clock that peers contradict reports disagreement until a restart", () => {
  const clock = new FleaseClock(0, 10_000, 100, 0);
  clock.distrust();
  expect([disagree(clock, 1_000, 11_000), clock.disagreedByMs]).toEqual([true, 0]);
  clock.restart(2_000, 12_000);
  expect(disagree(clock, 2_000, 12_000)).toBe(false);
});

test("an upper bound left behind by clocks that stepped back together is a disagreement too", () => {
  // The wall clock jumped ahead a little: the node's own leases would seem to have ended for that long.
  const clock = new FleaseClock(0, 10_000, 100, 0);
  read(clock, 0, 10_070);
  expect(disagree(clock, 10, 10_010)).toBe(false);
  // The steady clock stood still meanwhile.
  expect(disagree(clock, 1_010, 10_960)).toBe(false);
  read(clock, 1_011, 11_061);
  expect(disagree(clock, 1_011, 10_960)).toBe(true);
});

test("a restart takes a new anchor, and only it lets hi move back", () => {
  const clock = new FleaseClock(0, 10_000, 100, 0);
  read(clock, 100, 90_000);
  clock.restart(200, 10_200);
  expect(read(clock, 300, 10_300)).toEqual({
    mono: 300,
    wall: 10_300,
    lo: 10_300,
    hi: 10_300,
    clocksDisagree: false,
  });
  expect(disagree(clock, 5_000, 15_000)).toBe(false);
});

test("small corrections of the wall clock are followed, slowly, however wrong the rates of clocks may be", () => {
  for (const rateError of [0.001, 0.1]) {
    const clock = new FleaseClock(0, 10_000, 100, rateError);
    // The wall clock is 30 behind from now on; the anchor may move by 0.05 % of the steady time.
    expect(read(clock, 10_000, 19_970).hi).toBeCloseTo(19_995, 6);
    expect(read(clock, 60_000, 69_970).hi).toBeCloseTo(69_970, 6);
  }
});

/**
 * Interrupts a process for up to a tenth of a second at any point, also between its readings of two clocks
 * that agree.
 * @returns whether some reading reported a disagreement
 */
function interruptedAtRandom(pausesMs: readonly number[]): boolean {
  let trueMs = 0;
  let looks = 0;
  const look = () => (trueMs += 0.0001 + (pausesMs[looks++ % pausesMs.length] ?? 0));
  const own = { monotonicMs: look, wallMs: () => 10_000 + Math.floor(look()) };
  const { monotonicMs, wallMs } = readBothClocks(own);
  const clock = new FleaseClock(monotonicMs, wallMs, 20, 0.1);
  for (let readings = 0; readings < 50; readings += 1) {
    const now = readBothClocks(own);
    if (read(clock, now.monotonicMs, now.wallMs).clocksDisagree) return true;
  }
  return false;
}

const pauses = fc.array(
  fc.oneof(
    { weight: 20, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 100 }) },
  ),
  { minLength: 30, maxLength: 300 },
);

test("a process interrupted between reading its two clocks does not report that they disagree", () => {
  fc.assert(
    fc.property(pauses, (pausesMs) => {
      expect(interruptedAtRandom(pausesMs)).toBe(false);
    }),
    { numRuns: 1_000 },
  );
  const found = () => fc.check(fc.property(pauses, (pausesMs) => !interruptedAtRandom(pausesMs))).failed;
  expect(withFaults({ clocksAreReadApart: true }, found)).toBe(true);
});
