import { afterEach, expect, test, vi } from "vitest";
import { ThreadLimiter } from "./thread-limiter.js";

afterEach(() => vi.unstubAllEnvs());

/** Calls of a store that hang until they are released. */
function hanging(limiter: ThreadLimiter, count: number) {
  const ends: (() => void)[] = [];
  const call = () => new Promise<void>((resolve) => ends.push(resolve));
  const all = Array.from({ length: count }, () => limiter.run(call));
  return {
    running: () => ends.length,
    end: async () => {
      for (let ended = 0; ended < count;) {
        while (ends.length === ended) await Promise.resolve();
        ends[ended++]!();
      }
      await Promise.all(all);
    },
  };
}

test("stores on files share all of Node's threads but one, so that the program keeps one when all of them hang", async () => {
  vi.stubEnv("UV_THREADPOOL_SIZE", "8");
  const alone = new ThreadLimiter();
  const first = hanging(alone, 20);
  await Promise.resolve();
  expect(first.running()).toBe(7);
  const other = new ThreadLimiter();
  const second = hanging(other, 20);
  await Promise.resolve();
  expect(second.running()).toBe(3);
  await first.end();
  const again = hanging(alone, 20);
  await Promise.resolve();
  expect(again.running()).toBe(3);
  await Promise.all([again.end(), second.end()]);
  other.close();
  const third = hanging(alone, 20);
  await Promise.resolve();
  expect(third.running()).toBe(7);
  await third.end();
  alone.close();
});

test("each store has at least one thread, and its queue is bounded", async () => {
  vi.stubEnv("UV_THREADPOOL_SIZE", "2");
  const limiters = Array.from({ length: 3 }, () => new ThreadLimiter({ waitingMax: 2 }));
  const all = limiters.map((limiter) => hanging(limiter, 3));
  await Promise.resolve();
  expect(all.map((each) => each.running())).toEqual([1, 1, 1]);
  await expect(limiters[0]!.run(() => Promise.resolve())).rejects.toMatchObject({
    code: "STORE_UNAVAILABLE",
  });
  await Promise.all(all.map((each) => each.end()));
  for (const limiter of limiters) limiter.close();
});
