import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Deadline,
  type Facts,
  decide,
  defaultKillAfterMs,
  killAfterMsMax,
  killMarginMs,
  mayStart,
  remainingMs,
  startMs,
} from "./guard-policy.js";

/** Node's shortest timer. */
const TIMER_MS = 1;

const limits = { killAfterMs: 1_000, killMarginMs: 200, startMs: 2_000 };

function at(nowMs: number, deadlineMs: number, more: Partial<Facts> = {}): Facts {
  const both = (ms: number): Deadline => ({ monotonicMs: ms, wallMs: 1e12 + ms });
  return { now: both(nowMs), deadline: both(deadlineMs), orphaned: false, lost: false, ...more };
}

describe("what the guard does", () => {
  test("waits while the deadline is further away than the child's time to end", () => {
    expect(decide(at(0, 4_000), limits)).toEqual({ action: "wait", wakeInMs: 100 });
    expect(decide(at(2_950, 4_000), limits)).toEqual({ action: "wait", wakeInMs: 50 });
  });

  test("terminates when the lease was not renewed in time, and kills before the deadline", () => {
    expect(decide(at(3_000, 4_000), limits)).toMatchObject({ action: "terminate", cause: "deadline" });
    expect(decide(at(3_790, 4_000, { terminatedAtMs: 3_000 }), limits)).toEqual({
      action: "wait",
      wakeInMs: 10,
    });
    expect(decide(at(3_800, 4_000, { terminatedAtMs: 3_000 }), limits)).toMatchObject({ action: "kill" });
  });

  test("terminates at once when run is dead, and kills when the child has had its time", () => {
    expect(decide(at(0, 10_000, { orphaned: true }), limits)).toMatchObject({
      action: "terminate",
      cause: "orphaned",
    });
    const told = { orphaned: true, terminatedAtMs: 0 };
    expect(decide(at(990, 10_000, told), limits)).toEqual({ action: "wait", wakeInMs: 10 });
    expect(decide(at(1_000, 10_000, told), limits)).toMatchObject({ action: "kill", cause: "orphaned" });
  });

  test("an orphan near the deadline gets less time", () => {
    expect(decide(at(9_800, 10_000, { orphaned: true, terminatedAtMs: 9_700 }), limits).action).toBe("kill");
  });

  test("kills at once when the lease is lost", () => {
    expect(decide(at(0, 10_000, { lost: true }), limits)).toMatchObject({ action: "kill", cause: "lost" });
  });

  test("a command starts with half of the lease left, or after a renewal, and never to be terminated at once", () => {
    expect(mayStart(at(0, 2_000), limits, false)).toBe(true);
    expect(mayStart(at(1, 2_000), limits, false)).toBe(false);
    expect(mayStart(at(999, 2_000), limits, true)).toBe(true);
    expect(mayStart(at(1_000, 2_000), limits, true)).toBe(false);
    expect(mayStart(at(0, 2_000, { orphaned: true }), limits, true)).toBe(false);
  });

  test("a renewal after SIGTERM neither withdraws nor repeats it", () => {
    expect(decide(at(3_100, 8_000, { terminatedAtMs: 3_000 }), limits).action).toBe("wait");
    expect(decide(at(4_000, 8_000, { terminatedAtMs: 3_000 }), limits).action).toBe("kill");
  });

  test("the clock that is nearer to the deadline counts: a suspended machine shows only in the system time", () => {
    const suspended = at(0, 4_000);
    const now = { monotonicMs: 0, wallMs: suspended.now.wallMs + 60_000 };
    expect(decide({ ...suspended, now }, limits).action).toBe("kill");
    const setBack = { monotonicMs: 3_900, wallMs: suspended.now.wallMs - 60_000 };
    expect(decide({ ...suspended, now: setBack }, limits).action).toBe("kill");
    expect(remainingMs(setBack, suspended.deadline)).toBe(100);
  });

  test("time to end may be 0: then SIGKILL comes without SIGTERM", () => {
    const none = { ...limits, killAfterMs: 0 };
    expect(decide(at(3_799, 4_000), none)).toEqual({ action: "wait", wakeInMs: 1 });
    expect(decide(at(3_800, 4_000), none).action).toBe("kill");
  });
});

describe("limits from the length of the lease", () => {
  test("time to end is a quarter of the ttl, 5 s at most; the margin is 200 ms, and a quarter of a short ttl", () => {
    expect(defaultKillAfterMs(4_000)).toBe(1_000);
    expect(killMarginMs(4_000)).toBe(200);
    expect(defaultKillAfterMs(15_000)).toBe(3_750);
    expect(defaultKillAfterMs(60_000)).toBe(5_000);
    expect(killMarginMs(300)).toBe(75);
  });

  test("the default is always allowed", () => {
    const anyTtl = fc.integer({ min: 1, max: 1e9 });
    fc.assert(
      fc.property(anyTtl, (ttl) => {
        expect(defaultKillAfterMs(ttl)).toBeLessThan(killAfterMsMax(ttl));
      }),
    );
  });
});

describe("for any clock readings and renewals", () => {
  const scenario = fc.record({
    ttl: fc.integer({ min: 400, max: 60_000 }),
    share: fc.double({ min: 0, max: 0.49, noNaN: true }),
    orphanedAt: fc.option(fc.integer({ min: 0, max: 120_000 })),
    renewals: fc.array(fc.integer({ min: 0, max: 60_000 }), { maxLength: 20 }),
  });

  test("SIGKILL has been sent when the margin begins, if each look is on time", () => {
    fc.assert(
      fc.property(scenario, ({ ttl, share, orphanedAt, renewals }) => {
        const own = { killAfterMs: ttl * share, killMarginMs: killMarginMs(ttl), startMs: startMs(ttl) };
        const pending = [...renewals].sort((a, b) => a - b);
        let now = 0;
        let deadline = ttl;
        let terminatedAtMs: number | undefined;
        for (let looks = 0; looks < 5_000; looks += 1) {
          while (pending[0] !== undefined && pending[0] <= now) {
            if (pending[0] < deadline && (orphanedAt ?? Infinity) > pending[0]) deadline = pending[0] + ttl;
            pending.shift();
          }
          const orphaned = orphanedAt !== null && orphanedAt <= now;
          const told = terminatedAtMs === undefined ? {} : { terminatedAtMs };
          const decision = decide(at(now, deadline, { orphaned, ...told }), own);
          if (decision.action === "kill") return now <= deadline - own.killMarginMs + TIMER_MS;
          if (decision.action === "terminate") terminatedAtMs ??= now;
          expect(decision.wakeInMs).toBeGreaterThanOrEqual(0);
          now += Math.max(TIMER_MS, decision.wakeInMs);
        }
        return false;
      }),
      { numRuns: 200 },
    );
  });
});
