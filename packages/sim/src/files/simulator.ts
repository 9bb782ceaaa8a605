import type { Simulator } from "../kit/simulator.js";
import { filesFeatures } from "./plan.js";
import { simulateFiles } from "./run.js";
import type { MakeCluster } from "./world.js";

const ofNames: ReadonlySet<string> = new Set(["undecided", "added", "drained", "removed"]);

/** Replicated files. */
export const simulatorOf = (makeCluster: MakeCluster): Simulator => ({
  modes: [],
  features: filesFeatures.names,
  tellsStories: true,
  run: (wanted) => simulateFiles({ ...wanted, makeCluster }),
  isLiveness: (invariant) => invariant === "progress",
  canHappen: (counter) => !ofNames.has(counter),
});
