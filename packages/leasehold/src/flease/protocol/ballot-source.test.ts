import * as fc from "fast-check";
import { expect, test } from "vitest";
import { at, ballot } from "../../../../../test/support/flease-bench.js";
import { BallotSource } from "./ballot-source.js";
import { withFaults } from "../../../../../test/planted/switches.js";

const skewMs = 10;

const strictlyIncreasing = fc.property(
  fc.array(
    fc.tuple(fc.integer({ min: -1_000, max: 1_000 }), fc.option(fc.integer({ min: -1_000, max: 1_000 }))),
  ),
  (steps) => {
    const source = new BallotSource();
    let last = -Infinity;
    for (const [wall, seen] of steps) {
      if (seen !== null) source.learn(ballot(seen), at(wall), skewMs);
      const number = source.next(at(wall));
      if (number <= last) return false;
      last = number;
    }
    return true;
  },
);

test("numbers rise strictly, also when the clock stands still or steps back (F19)", () => {
  expect(() => fc.assert(strictlyIncreasing)).not.toThrow();
});

test("ballot numbers taken from the clock alone do not rise strictly, and the property finds it", () => {
  withFaults({ ballotsNotIncreasing: true }, () =>
    expect(fc.check(strictlyIncreasing, { seed: 1 }).failed).toBe(true),
  );
});

test("a fresh number is that of the wall clock", () => {
  expect(new BallotSource().next(at(5))).toBe(ballot(5));
});

test("a fresh number is not that of the upper bound, which may have run ahead", () => {
  const ahead = at(5, { hi: 60_000 });
  expect(new BallotSource().next(ahead)).toBe(ballot(5));
  expect(withFaults({ ballotsFromUpperClock: true }, () => new BallotSource().next(ahead))).toBe(
    ballot(60_000),
  );
});

test("the next number exceeds those seen elsewhere, so that a slow clock does not lose for ever", () => {
  const source = new BallotSource();
  source.learn(ballot(9) + 3, at(0), skewMs);
  expect(source.next(at(0))).toBe(ballot(9) + 4);
  expect(source.next(at(0))).toBe(ballot(9) + 5);
});

test("a number that no clock within ε can have made is not believed", () => {
  const source = new BallotSource();
  source.learn(ballot(10), at(0), skewMs);
  expect(source.seen).toBe(ballot(10));
  source.learn(ballot(10) + 1, at(0), skewMs);
  source.learn(ballot(500), at(0), skewMs);
  expect(source.seen).toBe(ballot(10));
});

test("a number drawn by a clone leaves the original where it was", () => {
  const source = new BallotSource();
  source.learn(ballot(3), at(0), skewMs);
  source.next(at(0));
  const copy = source.clone();
  expect([copy.last, copy.seen]).toEqual([source.last, source.seen]);
  copy.next(at(100));
  expect(source.last).toBe(ballot(3) + 1);
});
