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
  // Undecided histories and elections in good times are not required.
  canHappen: (counter) => counter !== "undecided" && counter !== "lateElections",
};
