import fc from "fast-check";
import { expect, test } from "vitest";
import type { Timers } from "./ports.js";
import { mapInChunks, sortInChunks } from "./chunks.js";

/** Counts the turns of the event loop that a function takes. */
async function turnsOf<T>(start: (timers: Timers) => Promise<T>): Promise<{ value: T; turns: number }> {
  let turns = 1;
  const after = (_delayMs: number, run: () => void) => {
    turns += 1;
    queueMicrotask(run);
    return { cancel: () => undefined };
  };
  const value = await start({ after });
  return { value, turns };
}

test("a long list is mapped and sorted in turns of at most 10,000 items each", async () => {
  const list = Array.from({ length: 45_000 }, (_, index) => (index * 7_919) % 45_000);
  const mapped = await turnsOf((timers) => mapInChunks(list, (each) => each + 1, timers));
  expect(mapped).toEqual({ value: list.map((each) => each + 1), turns: 5 });
  const sorted = await turnsOf((timers) => sortInChunks(list, (one, other) => one - other, timers));
  expect(sorted.value).toEqual(list.toSorted((one, other) => one - other));
  expect(sorted.turns).toBeGreaterThan(15);
});

test("a short list is mapped and sorted in one turn", async () => {
  const list = [3, 1, 2];
  const sorted = await turnsOf((timers) => sortInChunks(list, (one, other) => one - other, timers));
  expect(sorted).toEqual({ value: [1, 2, 3], turns: 1 });
  expect(await turnsOf((timers) => mapInChunks(list, String, timers))).toEqual({
    value: ["3", "1", "2"],
    turns: 1,
  });
});

test("equal items keep their order, however many runs are merged", async () => {
  const pair = fc.record({ key: fc.nat(3), at: fc.nat() });
  await fc.assert(
    fc.asyncProperty(fc.array(pair, { maxLength: 40, size: "max" }), async (few) => {
      const list = Array.from({ length: 700 }, (_, turn) =>
        few.map(({ key }, at) => ({ key, at: turn * 40 + at })),
      );
      const byKey = (one: { key: number }, other: { key: number }) => one.key - other.key;
      const { value } = await turnsOf((timers) => sortInChunks(list.flat(), byKey, timers));
      expect(value).toEqual(list.flat().toSorted(byKey));
    }),
    { numRuns: 5 },
  );
});
