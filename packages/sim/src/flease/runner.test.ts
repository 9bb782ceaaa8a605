import { expect, test } from "vitest";
import type { ClockMode } from "../kit/clocks.js";
import { failureText } from "../kit/simulator.js";
import { simulateMany } from "./run.js";

/** Many seeds: `LEASEHOLD_SEEDS=1000`. */
const seeds = Number(process.env["LEASEHOLD_SEEDS"] ?? 4);

/** Features that do not belong to the protocol, and so would not test the runner. */
const without = ["waist", "clients-that-come-and-go", "cells", "views"] as const;

/** In `b` and `f` the steady clock alone excludes while wall clocks step, each by itself or together: restarts, and readings that must be fresh. */
test.each<ClockMode>(["b", "f"])("what runs a peer breaks nothing in clock mode %s", async (mode) => {
  const { counters, failed } = await simulateMany({
    firstSeed: 1,
    modes: [mode],
    without,
    goOn: (runs) => runs < seeds,
  });
  expect(failed && `${failureText(failed)} after ${counters.runs} runs`).toBeUndefined();
  expect(counters.clockAlarms).toBeGreaterThan(0);
});
