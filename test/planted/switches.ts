import { mistakes } from "./mistakes.mjs";

/** The name of a planted mistake. */
export type Fault = string;

export type Faults = Record<Fault, boolean>;

export const noFaults: Faults = Object.fromEntries(mistakes.map(({ name }) => [name, false]));

/** Switches that tests may turn on, with two functions that turn them off again in any case. */
interface Switches<Names> {
  readonly faults: Names;
  /** Runs `body` with some mistakes planted, and removes them afterwards. */
  withFaults<T>(wanted: Partial<Names>, body: () => T): T;
  /** The same for an asynchronous `body`. */
  duringFaults<T>(wanted: Partial<Names>, body: () => Promise<T>): Promise<T>;
}

export function plantedFaults<Names extends object>(none: Names): Switches<Names> {
  const faults = { ...none };
  const plant = (wanted: Partial<Names>) => {
    const unknown = Object.keys(wanted).find((name) => !(name in none));
    if (unknown !== undefined) throw new Error(`no mistake is called "${unknown}"`);
    const before = { ...faults };
    Object.assign(faults, wanted);
    return () => Object.assign(faults, before);
  };
  return {
    faults,
    withFaults: (wanted, body) => {
      const takeOut = plant(wanted);
      try {
        return body();
      } finally {
        takeOut();
      }
    },
    duringFaults: async (wanted, body) => {
      const takeOut = plant(wanted);
      try {
        return await body();
      } finally {
        takeOut();
      }
    },
  };
}

export const { faults, withFaults, duringFaults } = plantedFaults(noFaults);

// A process can have mistakes from its start, named in its environment.
for (const name of (process.env["LEASEHOLD_PLANTED"] ?? "").split(",").filter(Boolean)) {
  if (!(name in faults)) throw new Error(`no mistake is called "${name}"`);
  faults[name] = true;
}

/** The switches that a build with mistakes reads, see `plant.mjs`. */
export const planted = faults;
