import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import type { ExecutionError, Lock, Redlock, ResourceLockedError, Settings } from "@leasehold/redlock";

/** The common interface of npm's redlock and the drop-in. */
export type RedlockLike = Pick<
  Redlock,
  "acquire" | "release" | "extend" | "using" | "quit" | "on" | "listenerCount" | "settings"
>;

export interface Subject {
  /** Creates a program that shares only the ground with others. */
  create(settings?: Partial<Settings>): Promise<RedlockLike>;
  readonly ExecutionError: typeof ExecutionError;
  readonly ResourceLockedError: typeof ResourceLockedError;
  /** Takes a lock away from its holder. */
  steal(resource: string): Promise<unknown>;
  /** The greatest time by which an expiration may be earlier than redlock's. */
  readonly earlierMsMax: (durationMs: number) => number;
}

const once: Partial<Settings> = { retryCount: 0 };
let names = 0;
const fresh = () => `redlock/${process.pid}/${names++}`;

/**
 * The behaviour on which a program of redlock may rely. Each test passes with redlock 5.0.0-beta.2 on a
 * Redis.
 */
export function runRedlockConformance(subject: () => Subject): void {
  const programs: RedlockLike[] = [];
  afterAll(() => Promise.allSettled(programs.map((redlock) => redlock.quit())));
  const create = async (settings?: Partial<Settings>) => {
    const redlock = await subject().create(settings);
    programs.push(redlock);
    return redlock;
  };
  const pair = async () => [await create(), await create()] as const;
  const failure = async (call: Promise<unknown>) => {
    const error: unknown = await call.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(subject().ExecutionError);
    return error as ExecutionError;
  };
  /** Whether a program acquires these within half a second, or at once. */
  const gets = async (redlock: RedlockLike, resources: string[], settings: Partial<Settings>) => {
    const lock = await redlock.acquire(resources, 2_000, settings).catch(() => undefined);
    await lock?.release();
    return lock !== undefined;
  };
  const isHeld = async (redlock: RedlockLike, ...resources: string[]) =>
    !(await gets(redlock, resources, once));
  const isFree = (redlock: RedlockLike, ...resources: string[]) =>
    gets(redlock, resources, { retryCount: 10, retryDelay: 50, retryJitter: 0 });

  describe("acquire and release", () => {
    test("several resources are held together, and free again after the release", async () => {
      const [one, other] = await pair();
      const [a, b, c] = [fresh(), fresh(), fresh()];
      const lock = await one.acquire([b, a], 5_000);
      expect(lock.resources).toEqual([b, a]);
      expect(await isHeld(other, a)).toBe(true);
      expect(await isHeld(other, c, b)).toBe(true);
      expect(await isFree(other, c)).toBe(true);
      await lock.release();
      expect(await isFree(other, a, b, c)).toBe(true);
    });

    test.each([
      [5_000, undefined, 52],
      [2_000, 0.1, 202],
      [1_234, 0, 2],
    ])("of %i ms with drift %s it expires %i ms before its end", async (duration, driftFactor, drift) => {
      const redlock = await create();
      const beforeMs = Date.now();
      const lock = await redlock.acquire(
        [fresh()],
        duration,
        driftFactor === undefined ? {} : { driftFactor },
      );
      const { expiration } = lock;
      const earlierMs = subject().earlierMsMax(duration);
      expect(expiration).toBeGreaterThanOrEqual(beforeMs + duration - drift - earlierMs);
      expect(expiration).toBeLessThanOrEqual(Date.now() + duration - drift);
      await lock.release();
      expect(lock.expiration).toBe(0);
    });

    test("a lock has its attempts, and a unique value", async () => {
      const redlock = await create();
      const locks = [await redlock.acquire([fresh()], 2_000), await redlock.acquire([fresh()], 2_000)];
      expect(new Set(locks.map(({ value }) => value)).size).toBe(2);
      for (const { attempts, value } of locks) {
        expect(value).toMatch(/^[0-9a-f]{32}$/);
        expect(attempts).toHaveLength(1);
        const { membershipSize, quorumSize, votesFor, votesAgainst } = await attempts[0]!;
        expect([membershipSize, quorumSize, votesFor.size, votesAgainst.size]).toEqual([1, 1, 1, 0]);
      }
      expect(await Promise.all(locks.map((lock) => lock.release()))).toHaveLength(2);
    });

    test.each([0, 2])(
      "with retryCount %i there is one attempt more, and each is reported",
      async (retryCount) => {
        const [one, other] = await pair();
        const name = fresh();
        const lock = await one.acquire([name], 5_000);
        const errors: Error[] = [];
        other.on("error", (error: Error) => errors.push(error));
        const startMs = performance.now();
        const error = await failure(
          other.acquire([name], 5_000, { retryCount, retryDelay: 60, retryJitter: 0 }),
        );
        expect(performance.now() - startMs).toBeGreaterThan(58 * retryCount);
        expect(error.name).toBe("ExecutionError");
        expect(error.attempts).toHaveLength(retryCount + 1);
        for (const attempt of error.attempts) {
          const [vote] = (await attempt).votesAgainst.values();
          expect(vote).toBeInstanceOf(subject().ResourceLockedError);
        }
        const held = errors.filter((each) => each instanceof subject().ResourceLockedError);
        expect(held.length).toBeGreaterThanOrEqual(retryCount + 1);
        await lock.release();
      },
    );

    test("an error without a listener does not throw", async () => {
      const redlock = await create();
      expect(redlock.listenerCount("error")).toBe(1);
    });

    test("a caller gets a lock that is released while it retries", async () => {
      const [one, other] = await pair();
      const name = fresh();
      const lock = await one.acquire([name], 10_000);
      const next = other.acquire([name], 2_000, { retryCount: 40, retryDelay: 50 });
      await sleep(150);
      await lock.release();
      const taken = await next;
      expect(taken.expiration).toBeGreaterThan(Date.now());
      await taken.release();
    });

    test("with retryCount -1 a caller retries for ever", async () => {
      const [one, other] = await pair();
      const name = fresh();
      const lock = await one.acquire([name], 10_000);
      expect(await isHeld(other, name)).toBe(true);
      const next = other.acquire([name], 2_000, { retryCount: -1, retryDelay: 5, retryJitter: 0 });
      await sleep(800);
      await lock.release();
      const taken = await next;
      expect(taken.attempts.length).toBeGreaterThan(1);
      await taken.release();
    });

    test("of many concurrent callers, one at a time has the lock", async () => {
      const callers = await Promise.all([create(), create(), create()]);
      const [a, b] = [fresh(), fresh()];
      let inside = 0;
      let most = 0;
      const work = async (redlock: RedlockLike, resources: string[]) => {
        const lock = await redlock.acquire(resources, 5_000, {
          retryCount: 400,
          retryDelay: 20,
          retryJitter: 10,
        });
        inside += 1;
        most = Math.max(most, inside);
        await sleep(5);
        inside -= 1;
        await lock.release();
      };
      await Promise.all(
        callers.flatMap((redlock) => [work(redlock, [a, b]), work(redlock, [b, a]), work(redlock, [a])]),
      );
      expect([most, inside]).toEqual([1, 0]);
    });

    test("a second release fails, and so does one of two concurrent ones", async () => {
      const redlock = await create(once);
      const lock = await redlock.acquire([fresh()], 5_000);
      const { attempts } = await lock.release();
      expect(attempts).toHaveLength(1);
      const [vote] = (await (await failure(lock.release())).attempts[0]!).votesAgainst.values();
      expect(vote).toBeInstanceOf(subject().ResourceLockedError);
      const next = await redlock.acquire([fresh()], 5_000);
      const results = await Promise.allSettled([next.release(), redlock.release(next)]);
      expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    });

    test("a lock that is not extended ends: another caller gets it, and the first can no longer use it", async () => {
      const one = await create(once);
      const other = await create();
      const name = fresh();
      const lock = await one.acquire([name], 700);
      const next = await other.acquire([name], 5_000, { retryCount: 200, retryDelay: 20 });
      expect(lock.expiration).toBeLessThan(Date.now());
      await failure(lock.extend(1_000));
      await failure(lock.release());
      expect(await isHeld(one, name)).toBe(true);
      await next.release();
    });
  });

  describe("extend", () => {
    test("returns a new lock, and the old one expires", async () => {
      const [one, other] = await pair();
      const name = fresh();
      const lock = await one.acquire([name], 1_000);
      const startMs = Date.now();
      const longer = await lock.extend(3_000);
      expect(longer).not.toBe(lock);
      expect([longer.resources, longer.value]).toEqual([lock.resources, lock.value]);
      expect(longer.attempts).toHaveLength(1);
      expect(lock.expiration).toBe(0);
      expect(longer.expiration).toBeGreaterThan(startMs + 500);
      await failure(lock.extend(3_000));
      await sleep(startMs + 1_700 - Date.now());
      expect(await isHeld(other, name)).toBe(true);
      await longer.release();
      expect(await isFree(other, name)).toBe(true);
    });

    test("shortens, too", async () => {
      const [one, other] = await pair();
      const name = fresh();
      const lock = await one.extend(await one.acquire([name], 60_000), 300);
      expect(lock.expiration).toBeLessThan(Date.now() + 300);
      await (await other.acquire([name], 2_000, { retryCount: 100, retryDelay: 20 })).release();
    });

    test("leaves the old lock able to release, after which the new one is not", async () => {
      const [one, other] = await pair();
      const name = fresh();
      const lock = await one.acquire([name], 3_000);
      const longer = await lock.extend(3_000);
      await lock.release();
      expect(await isFree(other, name)).toBe(true);
      await failure(one.release(longer, once));
    });

    test("two concurrent extensions both succeed", async () => {
      const redlock = await create();
      const lock = await redlock.acquire([fresh()], 3_000);
      const [one, other] = await Promise.all([lock.extend(3_000), lock.extend(3_000)]);
      expect([one.value, other.value]).toEqual([lock.value, lock.value]);
      await one.release();
    });
  });

  describe("durations", () => {
    test.each([1.5, Number.NaN, 0, -1, Infinity])("of %s are refused", async (duration) => {
      const redlock = await create(once);
      const name = fresh();
      await expect(redlock.acquire([name], duration)).rejects.toBeInstanceOf(Error);
      await expect(redlock.using([name], duration, async () => "ran")).rejects.toBeInstanceOf(Error);
      const lock = await redlock.acquire([name], 2_000);
      await expect(lock.extend(duration)).rejects.toBeInstanceOf(Error);
    });

    test("of 1 ms are not", async () => {
      const redlock = await create();
      const lock: Lock = await redlock.acquire([fresh()], 1);
      expect(lock.expiration).toBeLessThanOrEqual(Date.now());
    });
  });

  describe("using", () => {
    test("holds the lock until the routine has ended, longer than the duration, and returns its value", async () => {
      const [one, other] = await pair();
      const name = fresh();
      const value = await one.using([name], 700, { automaticExtensionThreshold: 500 }, async (signal) => {
        expect([signal.aborted, signal.error]).toEqual([false, undefined]);
        await sleep(1_600);
        expect(await isHeld(other, name)).toBe(true);
        signal.throwIfAborted();
        return "done";
      });
      expect(value).toBe("done");
      expect(await isFree(other, name)).toBe(true);
    });

    test("rethrows the routine's error, and releases", async () => {
      const [one, other] = await pair();
      const name = fresh();
      const wrong = new Error("wrong");
      const work = async () => {
        throw wrong;
      };
      await expect(one.using([name], 2_000, work)).rejects.toBe(wrong);
      expect(await isFree(other, name)).toBe(true);
    });

    test.each([500, 40])(
      "a duration is at least 100 ms longer than the threshold of %i ms",
      async (threshold) => {
        const redlock = await create({ automaticExtensionThreshold: threshold });
        const run = (duration: number) => redlock.using([fresh()], duration, async () => "ran");
        await expect(run(threshold + 99)).rejects.toThrow(/automaticExtensionThreshold/);
        expect(await run(threshold + 100)).toBe("ran");
        const own = { automaticExtensionThreshold: threshold + 1 };
        await expect(redlock.using([fresh()], threshold + 100, own, async () => "ran")).rejects.toThrow(
          /automaticExtensionThreshold/,
        );
      },
    );

    test("needs a routine", async () => {
      const redlock = await create();
      await expect(redlock.using([fresh()], 2_000, {})).rejects.toThrow(/routine/);
    });

    test("fails when another has the lock, and runs nothing", async () => {
      const [one, other] = await pair();
      const name = fresh();
      const lock = await one.acquire([name], 5_000);
      let hasRun = false;
      await failure(other.using([name], 2_000, once, async () => (hasRun = true)));
      expect(hasRun).toBe(false);
      await lock.release();
    });

    test("a lock that is lost aborts the signal with its error, and the loss is reported", async () => {
      const redlock = await create({ retryCount: 0, automaticExtensionThreshold: 500 });
      const name = fresh();
      const thrown = await failure(
        redlock.using([name], 1_000, async (signal) => {
          await subject().steal(name);
          const limitMs = performance.now() + 10_000;
          while (!signal.aborted && performance.now() < limitMs) await sleep(10);
          expect(signal.aborted).toBe(true);
          expect(signal.error).toBeInstanceOf(subject().ExecutionError);
        }),
      );
      expect(thrown.name).toBe("ExecutionError");
    });
  });

  test("the settings have redlock's defaults", async () => {
    expect((await create({ retryCount: 3 })).settings).toEqual({
      driftFactor: 0.01,
      retryCount: 3,
      retryDelay: 200,
      retryJitter: 100,
      automaticExtensionThreshold: 500,
    });
  });

  test("nothing is acquired after quit", async () => {
    const redlock = await create(once);
    await redlock.quit();
    await expect(redlock.acquire([fresh()], 2_000)).rejects.toBeInstanceOf(Error);
  });
}
