import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { turnClock } from "./turn-clock.js";

test("the clock is read once in each turn of the event loop", async () => {
  let readings = 0;
  const clock = turnClock({ monotonicMs: () => (readings += 1), wallMs: () => 0 });
  expect([clock.monotonicMs(), clock.monotonicMs()]).toEqual([1, 1]);
  await setImmediate();
  expect([clock.monotonicMs(), clock.monotonicMs()]).toEqual([2, 2]);
});
