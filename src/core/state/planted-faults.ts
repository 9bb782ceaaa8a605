import { noFaults } from "./faults.js";
import type { Faults } from "./faults.js";

/**
 * The test builds' side of the seam described in `faults.ts`: the same switches, which tests may turn.
 */
export const faults: Faults = { ...noFaults };

/** Runs `body` with some mistakes planted, and takes them out again. */
export function withFaults<T>(planted: Partial<Faults>, body: () => T): T {
  const before = { ...faults };
  Object.assign(faults, planted);
  try {
    return body();
  } finally {
    Object.assign(faults, before);
  }
}
