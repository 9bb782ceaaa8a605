import type { Simulator } from "../kit/simulator.js";
import { coreLivenessInvariants } from "./world/invariants.js";
import { simulateCore } from "./run.js";

/** A consistent core. */
export const simulator: Simulator = {
  modes: [],
  features: [],
  tellsStories: true,
  run: simulateCore,
  isLiveness: (invariant) => coreLivenessInvariants.has(invariant),
  // Neither a history that is too hard to decide nor an election in good times is anything to wish for.
  canHappen: (counter) => counter !== "undecided" && counter !== "lateElections",
};
