import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SharedThreads, SharedValidity, sharedMonotonicMs } from "./shared-validity.js";

const until = 1_700_000_000_000;

function fresh(upperLeadMs: number): {
  validity: SharedValidity;
  threads: SharedThreads;
  reader: SharedValidity;
} {
  const threads = new SharedThreads();
  threads.upperLeadMs = upperLeadMs;
  const validity = new SharedValidity();
  return { validity, threads, reader: new SharedValidity(validity.buffer) };
}

function look(reader: SharedValidity, threads: SharedThreads, wallMs: number, steadyMs: number): number {
  return reader.remainingMs(
    threads,
    () => wallMs,
    () => steadyMs,
  );
}

describe("how long a lease is valid, read in another thread", () => {
  test("the smaller of what remains on either clock, and by the upper bound of the thread that renews", () => {
    const { validity, threads, reader } = fresh(until - 1_000 - 5_000);
    expect(look(reader, threads, until - 1_000, 5_000)).toBe(0);
    validity.extend(until, 6_000);
    expect(look(reader, threads, until - 1_000, 5_000)).toBe(1_000);
    expect(look(reader, threads, until - 400, 5_000)).toBe(400);
    expect(look(reader, threads, until - 1_000, 5_700)).toBeCloseTo(300, 2);
    threads.upperLeadMs = until - 250 - 5_000;
    expect(look(reader, threads, until - 1_000, 5_000)).toBe(250);
  });

  test("nothing once it has been finished, whatever is written later", () => {
    const { validity, threads, reader } = fresh(0);
    validity.extend(until, 6_000);
    validity.finish("clock-fault");
    validity.extend(until + 5_000, 11_000);
    expect(look(reader, threads, until - 1_000, 5_000)).toBe(0);
    expect(reader.lossReason).toBe("clock-fault");
  });

  test("an end between the reading of the clocks and the answer counts", () => {
    const { validity, threads, reader } = fresh(0);
    validity.extend(until, 6_000);
    const steady = () => {
      validity.finish("clock-fault");
      return 5_000;
    };
    expect(reader.remainingMs(threads, () => until - 500, steady)).toBe(0);
  });

  test("never more than either end allows, for any fraction of a millisecond", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 10_000, noNaN: true }),
        fc.double({ min: 0, max: 10_000, noNaN: true }),
        fc.double({ min: 0, max: 10_000, noNaN: true }),
        (untilIn, endIn, leadMs) => {
          const { validity, threads, reader } = fresh(until + leadMs - 1_000_000);
          validity.extend(until + untilIn, 1_000_000 + endIn);
          const exact = Math.min(untilIn, untilIn - leadMs, endIn);
          // The doubles of the test itself are good for a quarter of a microsecond at this distance from 1970.
          expect(look(reader, threads, until, 1_000_000)).toBeLessThanOrEqual(Math.max(0, exact) + 0.0005);
        },
      ),
    );
  });

  test("the steady clock is the one that performance.now() counts by", async () => {
    const lead = sharedMonotonicMs() - performance.now();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(sharedMonotonicMs() - performance.now()).toBeCloseTo(lead, 0);
  });
});
