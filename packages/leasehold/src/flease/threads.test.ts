import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withFaults } from "../../../../test/planted/switches.js";
import { ProgramClock, RenewingThread, SharedThreads, SharedValidity } from "./threads.js";

const until = 1_700_000_000_000;
const clocks = { maxClockSkewMs: 500, clockRateError: 0 };

/**
 * A grant until `until`, which is 6,000 on the steady clock. The clock of the program's thread returns the
 * values it is given.
 */
function fresh(upperLeadMs = until - 6_000) {
  const threads = new SharedThreads();
  threads.upperLeadMs = upperLeadMs;
  const validity = new SharedValidity();
  const reader = new SharedValidity(validity.buffer);
  const shown = { wallMs: until, monoMs: 6_000 };
  const start = { epoch: 0, monoMs: 0, carriedMs: until - 6_000 };
  const clock = new ProgramClock(threads, start, clocks, {
    monotonicMs: () => shown.monoMs,
    wallMs: () => shown.wallMs,
  });
  const look = (wallMs: number, monoMs: number) => {
    Object.assign(shown, { wallMs, monoMs });
    return reader.remainingMs(() => clock.read());
  };
  return { threads, validity, reader, clock, look };
}

describe("a lease's validity, read in another thread", () => {
  test("is the lesser of the two clocks' remaining times, also by the renewing thread's upper bound", () => {
    const { validity, threads, look } = fresh();
    expect(look(until - 1_000, 5_000)).toBe(0);
    validity.extend(until, 6_000, Infinity);
    expect(look(until - 1_000, 5_000)).toBe(1_000);
    expect(look(until - 700, 5_100)).toBe(700);
    expect(look(until - 700, 5_400)).toBeCloseTo(600, 2);
    threads.upperLeadMs = until - 250 - 5_400;
    expect(look(until - 700, 5_400)).toBe(250);
  });

  test.each([
    ["the wall clock is slow when a suspended machine wakes", until - 900, 4_000],
    ["the wall clock has stepped back", until - 4_000, 5_000],
  ])(
    "is 0 as soon as its own check of the clocks finds that they disagree, and the other thread learns it: %s",
    (_, wallMs, monoMs) => {
      const { validity, threads, look } = fresh();
      validity.extend(until, 6_000, Infinity);
      const renewing = new RenewingThread(threads, "a.1");
      const reading = {
        mono: 3_000,
        wall: until - 3_000,
        lo: until - 3_000,
        hi: until - 3_000,
        clocksDisagree: false,
      };
      expect(renewing.note(reading, "a.1")).toBe(true);
      expect(look(until - 2_000, 4_000)).toBe(2_000);
      expect(look(wallMs, monoMs)).toBe(0);
      // Nor when the clocks agree again.
      expect(look(until - 900, 5_100)).toBe(0);
      expect(renewing.note(reading, "a.1")).toBe(false);
      withFaults({ programThreadTrustsClocks: true }, () => expect(look(wallMs, monoMs)).toBeGreaterThan(0));
    },
  );

  test("ends at once with a new owner, or with clocks that disagree in the renewing thread", () => {
    for (const [owner, clocksDisagree] of [
      ["a.2", false],
      ["a.1", true],
    ] as const) {
      const { validity, threads, look } = fresh();
      validity.extend(until, 6_000, Infinity);
      const renewing = new RenewingThread(threads, "a.1");
      expect(look(until - 1_000, 5_000)).toBe(1_000);
      renewing.note({ mono: 5_000, wall: until - 1_000, lo: 0, hi: until - 1_000, clocksDisagree }, owner);
      expect(look(until - 1_000, 5_000)).toBe(0);
    }
  });

  test("is never extended beyond the end that maxHold sets, which is the same for both threads", () => {
    const { validity, reader, look } = fresh();
    validity.extend(until, 6_000, 5_500);
    expect([look(until - 1_000, 5_000), reader.lossReason]).toEqual([500, "max-hold"]);
    validity.extend(until + 5_000, 11_000, 5_500);
    expect(look(until - 1_000, 5_000)).toBe(500);
    expect([reader.lastsAt(5_499), reader.lastsAt(5_500)]).toEqual([true, false]);
  });

  test("is 0 once it has been ended, whatever is written later", () => {
    const { validity, reader, look } = fresh();
    validity.extend(until, 6_000, Infinity);
    validity.finish("clock-fault");
    validity.extend(until + 5_000, 11_000, Infinity);
    expect(look(until - 1_000, 5_000)).toBe(0);
    expect(reader.lossReason).toBe("clock-fault");
  });

  test("takes account of an end between reading the clocks and answering", () => {
    const { validity, reader, clock } = fresh();
    validity.extend(until + 1_000, 7_000, Infinity);
    expect(reader.remainingMs(() => clock.read())).toBe(1_000);
    const readAndEnd = () => {
      validity.finish("broken");
      return clock.read();
    };
    expect(reader.remainingMs(readAndEnd)).toBe(0);
  });

  test("is never more than either end allows, for any fraction of a millisecond", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 10_000, noNaN: true }),
        fc.double({ min: 0, max: 10_000, noNaN: true }),
        fc.double({ min: 0, max: 10_000, noNaN: true }),
        (untilIn, endIn, leadMs) => {
          const { validity, look } = fresh(until - 6_000 + leadMs);
          validity.extend(until + untilIn, 6_000 + endIn, Infinity);
          const exact = Math.min(untilIn, untilIn - leadMs, endIn);
          // At this distance from 1970 a double is precise to a quarter of a microsecond.
          expect(look(until, 6_000)).toBeLessThanOrEqual(Math.max(0, exact) + 0.0005);
        },
      ),
    );
  });
});
