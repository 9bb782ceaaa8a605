import type { Simulator } from "../kit/simulator.js";
import { storageFeatures } from "./features.js";
import { livenessInvariants } from "./stage/invariants.js";
import { simulateStorage } from "./run.js";

/** Leases, registers and consensus on shared storage. */
export const simulator: Simulator = {
  modes: [],
  features: storageFeatures.names,
  tellsStories: true,
  run: simulateStorage,
  isLiveness: (invariant) => livenessInvariants.has(invariant),
  canHappen: () => true,
};
