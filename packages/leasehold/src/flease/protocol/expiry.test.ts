import * as fc from "fast-check";
import { expect, test } from "vitest";
import { at, baseMs, benchSettings, leaseOf, message } from "../../../../../test/support/flease-bench.js";
import { holdIsValid, leaseIsOver, reportedLeaseIsFinished, validForMs } from "./expiry.js";
import { Kind, LeaseState } from "./message.js";
import { withFaults } from "../../../../../test/planted/switches.js";

/** The three questions about time, at their boundaries; ε = 10. */
const settings = benchSettings();
const until = baseMs + 500;

test("the holder's bound and the others' bound leave exactly ε between them", () => {
  expect(holdIsValid(until, until, at(499))).toBe(true);
  expect(holdIsValid(until, until, at(500))).toBe(false);
  expect(leaseIsOver(until, until, at(509), settings)).toBe(false);
  expect(leaseIsOver(until, until, at(510), settings)).toBe(true);
});

test.each([
  ["as written", {}, [false, false, false, true]],
  ["steady clock alone", { wallTestOff: true }, [false, false, true, true]],
  ["wall clock alone", { rateTestOff: true }, [false, true, false, true]],
  ["either clock", { overByEitherClock: true }, [false, true, true, true]],
])("over, %s", (_which, fault, expected) => {
  const readings = [at(0), at(510, { mono: 0 }), at(0, { mono: 500 }), at(510)];
  withFaults(fault, () =>
    expect(readings.map((now) => leaseIsOver(until, until, now, settings))).toEqual(expected),
  );
});

test.each([
  ["as written", {}, [true, false, false, false]],
  ["steady clock alone", { wallTestOff: true }, [true, true, false, false]],
  ["wall clock alone", { rateTestOff: true }, [true, false, true, false]],
  ["neither", { holderIgnoresExpiry: true }, [true, true, true, true]],
])("valid, %s", (_which, fault, expected) => {
  const readings = [at(0), at(500, { mono: 0 }), at(0, { mono: 500 }), at(500)];
  withFaults(fault, () => expect(readings.map((now) => holdIsValid(until, until, now))).toEqual(expected));
});

test("what remains is positive exactly as long as the hold is valid", () => {
  const time = fc.integer({ min: 490, max: 510 });
  fc.assert(
    fc.property(time, time, time, time, (wallEnd, steadyEnd, wall, mono) => {
      const now = at(wall, { mono });
      const remaining = validForMs(baseMs + wallEnd, baseMs + steadyEnd, now);
      expect(remaining > 0).toBe(holdIsValid(baseMs + wallEnd, baseMs + steadyEnd, now));
      expect(remaining).toBe(Math.max(0, Math.min(wallEnd - wall, steadyEnd - mono)));
    }),
  );
});

test("no instant at which a holder is valid and another finds its lease over, with clocks within ε", () => {
  fc.assert(
    fc.property(fc.integer({ min: 480, max: 520 }), fc.integer({ min: -10, max: 10 }), (ms, aheadMs) => {
      // The steady clocks stand still: the wall clock's test has to suffice.
      const both = () =>
        holdIsValid(until, until, at(ms, { mono: 0 })) &&
        leaseIsOver(until, baseMs, at(ms + aheadMs, { mono: 0 }), settings);
      expect(both()).toBe(false);
    }),
  );
  // With one tick less there is an instant of overlap (P6).
  withFaults({ safetyPeriodOneTickShort: true }, () => {
    expect(holdIsValid(until, until, at(499))).toBe(true);
    expect(leaseIsOver(until, baseMs, at(509), settings)).toBe(true);
  });
});

test("a reported lease that was released blocks no one, except with the planted mistake (P44)", () => {
  const reply = message(Kind.promise, leaseOf("q.1", LeaseState.released, 500));
  const finished = () => reportedLeaseIsFinished(reply, "p.1", at(0), settings);
  expect(finished()).toBe(true);
  expect(withFaults({ releasedLeaseBlocksReader: true }, finished)).toBe(false);
});

test("a holder whose clocks disagree relies on nothing, however early both clocks say it is", () => {
  const until = baseMs + 500;
  const now = at(100, { clocksDisagree: true });
  expect([holdIsValid(until, until, now), validForMs(until, until, now)]).toEqual([false, 0]);
  expect(withFaults({ wallTestOff: true }, () => holdIsValid(until, until, now))).toBe(true);
});
