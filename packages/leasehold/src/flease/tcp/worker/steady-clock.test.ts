import { expect, test } from "vitest";
import { sharedMonotonicMs } from "./steady-clock.js";

/** The range of its lead over `performance.now()`, however long the process pauses during the measurement. */
function lead(): { least: number; most: number } {
  const beforeMs = performance.now();
  const sharedMs = sharedMonotonicMs();
  return { least: sharedMs - performance.now(), most: sharedMs - beforeMs };
}

test("the steady clock runs at the rate of performance.now()", async () => {
  const first = lead();
  await new Promise((resolve) => setTimeout(resolve, 20));
  const later = lead();
  expect(later.most).toBeGreaterThan(first.least - 0.5);
  expect(later.least).toBeLessThan(first.most + 0.5);
});
