import type { Simulator } from "../kit/simulator.js";
import { filesFeatures } from "./plan.js";
import { simulateFiles } from "./run.js";

/** Replicated files. */
export const simulator: Simulator = {
  modes: [],
  features: filesFeatures.names,
  tellsStories: true,
  run: simulateFiles,
  isLiveness: (invariant) => invariant === "progress",
  canHappen: (counter) => counter !== "undecided",
};
