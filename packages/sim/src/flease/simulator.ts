import { type ClockAssumptions, type ClockMode, assumptionsOf, clockModes } from "../kit/clocks.js";
import type { Simulator } from "../kit/simulator.js";
import type { CounterName } from "./stage/counters.js";
import { features } from "./features.js";
import { simulate } from "./run.js";

/** Counters that are zero in some clock modes, and the modes that have them. */
const onlyWhere: Partial<Record<CounterName, (clocks: ClockAssumptions) => boolean>> = {
  // Clocks that can be relied on never show anything impossible.
  impossibleClocks: ({ wall, stepsTogether }) => !wall || stepsTogether,
  // A steady clock that stands still breaks A-rate.
  suspensions: ({ suspends }) => suspends,
  slews: ({ rate, suspends }) => rate && !suspends,
};

/** No client here exceeds the members' limit of resources: only tests have such a client. */
const neverHere: ReadonlySet<string> = new Set<CounterName>(["fullRefusals"]);

/** This needs a majority that knows a waiter at the moment of a rare call: tests of waiting have it. */
const seldomHere: ReadonlySet<string> = new Set<CounterName>(["namedHeirs"]);

/** A cluster of peers. */
export const simulator: Simulator = {
  modes: clockModes,
  features: features.names,
  tellsStories: true,
  run: ({ mode, ...wanted }) => simulate({ ...wanted, mode: mode as ClockMode }),
  isLiveness: (invariant) => invariant.startsWith("L"),
  canHappen(counter, mode) {
    if (neverHere.has(counter) || seldomHere.has(counter)) return false;
    return (
      mode === undefined || onlyWhere[counter as CounterName]?.(assumptionsOf[mode as ClockMode]) !== false
    );
  },
};
