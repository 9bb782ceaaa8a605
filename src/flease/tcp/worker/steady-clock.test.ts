import { expect, test } from "vitest";
import { sharedMonotonicMs } from "./steady-clock.js";

test("the steady clock is the one that performance.now() counts by", async () => {
  const lead = sharedMonotonicMs() - performance.now();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(sharedMonotonicMs() - performance.now()).toBeCloseTo(lead, 0);
});
