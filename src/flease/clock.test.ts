import * as fc from "fast-check";
import { expect, test } from "vitest";
import { FleaseClock } from "./clock.js";
import type { Reading } from "./clock.js";
import { withFaults } from "./planted-faults.js";

const empty = (): Reading => ({ mono: 0, wall: 0, lo: 0, hi: 0, steppedBack: false });
const read = (clock: FleaseClock, mono: number, wall: number) => clock.read(mono, wall, empty());

/** Steps of the steady clock, and where the wall clock shows up relative to it. */
const history = fc.array(fc.tuple(fc.nat(5_000), fc.integer({ min: -500, max: 500 })), { maxLength: 40 });

/** I13: whatever the two clocks do, lo ≤ M ≤ hi, and hi never moves back. */
function boundsHold(steps: readonly (readonly [number, number])[]): boolean {
  const clock = new FleaseClock(1_000, 50_000, 10, 0);
  let mono = 1_000;
  let hi = -Infinity;
  for (const [stepMs, aheadMs] of steps) {
    mono += stepMs;
    const now = read(clock, mono, mono + 49_000 + aheadMs);
    const carried = mono + 49_000; // Without slewing M is the first anchor carried on.
    if (now.lo > carried || now.lo > now.wall || now.hi < carried || now.hi < now.wall || now.hi < hi)
      return false;
    hi = now.hi;
  }
  return true;
}

test("lo is below and hi above both clocks, and hi never moves back (I13)", () => {
  expect(() => fc.assert(fc.property(history, boundsHold))).not.toThrow();
});

test("bounds that are swapped are caught by that property", () => {
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
        // Steady clocks run wild; the walls stay within ε of each other.
        [wall, firstMono, secondMono] = [wall + stepMs, firstMono + firstStep, secondMono + secondStep];
        const left = read(first, firstMono, wall + firstAhead);
        const right = read(second, secondMono, wall + secondAhead);
        expect(left.lo - right.hi).toBeLessThanOrEqual(skewMs);
        expect(right.lo - left.hi).toBeLessThanOrEqual(skewMs);
      }
    }),
  );
});

test("a disagreement of more than ε/2 is a fault once it has lasted a second", () => {
  const clock = new FleaseClock(0, 10_000, 100, 0);
  expect(clock.isFaulty(read(clock, 0, 10_000))).toBe(false);
  expect(clock.isFaulty(read(clock, 1_000, 11_051))).toBe(false);
  expect(clock.isFaulty(read(clock, 1_999, 12_050))).toBe(false);
  expect(clock.isFaulty(read(clock, 2_000, 12_051))).toBe(true);
});

test("a glitch is no fault, nor is a disagreement of ε/2", () => {
  const clock = new FleaseClock(0, 10_000, 100, 0);
  for (let mono = 0; mono <= 5_000; mono += 100)
    expect(clock.isFaulty(read(clock, mono, mono + 10_050))).toBe(false);
  const glitching = new FleaseClock(0, 10_000, 100, 0);
  for (let mono = 0; mono <= 5_000; mono += 900) {
    const wall = mono + 10_000 - (mono % 1_800 === 0 ? 90 : 0);
    expect(glitching.isFaulty(read(glitching, mono, wall))).toBe(false);
  }
});

test("an upper bound left behind by clocks that stepped back together is a fault too", () => {
  // The wall clock went ahead for a moment: the node's own leases would seem to have ended for that long.
  const clock = new FleaseClock(0, 10_000, 100, 0);
  read(clock, 0, 70_000);
  read(clock, 1, 10_001);
  expect(clock.isFaulty(read(clock, 10, 10_010))).toBe(false);
  expect(clock.isFaulty(read(clock, 1_010, 11_010))).toBe(true);
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
    steppedBack: false,
  });
  expect(clock.isFaulty(read(clock, 5_000, 15_000))).toBe(false);
});

test("small corrections of the wall clock are followed, at half the rate error", () => {
  const clock = new FleaseClock(0, 10_000, 100, 0.01);
  // The wall clock is 30 behind from now on; the anchor may move by 0.5 % of the steady time.
  const soon = read(clock, 1_000, 10_970);
  expect(soon.hi).toBeCloseTo(10_995, 6);
  const late = read(clock, 10_000, 19_970);
  expect(late.hi).toBeCloseTo(19_970, 6);
});

test("a clone goes its own way", () => {
  const clock = new FleaseClock(0, 10_000, 100, 0.01);
  read(clock, 100, 10_150);
  const copy = clock.clone();
  expect(read(copy, 5_000, 15_020)).toEqual(read(clock, 5_000, 15_020));
  read(copy, 6_000, 90_000);
  expect(read(clock, 6_000, 16_000).hi).toBeLessThan(17_000);
});

test("a system time more than ε behind what was seen or carried has stepped back, also unseen", () => {
  const clock = new FleaseClock(0, 10_000, 100, 0.001);
  expect(clock.read(1_000, 11_000, empty()).steppedBack).toBe(false);
  expect(clock.read(1_100, 11_000, empty()).steppedBack).toBe(false);
  // Stopped for 3 s, in which all clocks stepped back by 2.5 s: no reading ever showed more than 11,100.
  expect(clock.read(4_100, 11_500, empty()).steppedBack).toBe(true);
  // Nor is it forgotten when the clocks come back: only a new incarnation starts afresh.
  expect(clock.read(4_200, 14_200, empty()).steppedBack).toBe(true);
  expect(clock.isFaulty(clock.read(4_300, 14_300, empty()))).toBe(false);
  expect(clock.isFaulty(clock.read(5_300, 15_300, empty()))).toBe(true);
  clock.restart(5_300, 15_300);
  expect(clock.read(5_400, 15_400, empty()).steppedBack).toBe(false);
});
