import { noFaults } from "./faults.js";

/** The switches of a protocol's list of mistakes, which tests may turn, and two ways to turn them back for certain. */
export interface PlantedFaults<Faults> {
  readonly faults: Faults;
  /** Runs `body` with some mistakes planted, and takes them out again. */
  withFaults<T>(planted: Partial<Faults>, body: () => T): T;
  /** The same for what takes its time. */
  duringFaults<T>(planted: Partial<Faults>, body: () => Promise<T>): Promise<T>;
}

/**
 * The test builds' side of the seam that each `faults.ts` describes: the same switches, not frozen. No file of this name is
 * compiled into the product.
 */
export function plantedFaults<Faults extends object>(noFaults: Faults): PlantedFaults<Faults> {
  const faults = { ...noFaults };
  const plant = (planted: Partial<Faults>) => {
    const before = { ...faults };
    Object.assign(faults, planted);
    return () => Object.assign(faults, before);
  };
  return {
    faults,
    withFaults: (planted, body) => {
      const takeOut = plant(planted);
      try {
        return body();
      } finally {
        takeOut();
      }
    },
    duringFaults: async (planted, body) => {
      const takeOut = plant(planted);
      try {
        return await body();
      } finally {
        takeOut();
      }
    },
  };
}

export const { faults, withFaults, duringFaults } = plantedFaults(noFaults);
