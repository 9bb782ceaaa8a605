import type { Simulator } from "../kit/simulator.js";
import { runGrid } from "./run.js";

/** Flease on stores. Progress is not checked there. */
export const simulator: Simulator = {
  modes: [],
  features: [],
  tellsStories: false,
  run: ({ seed }) => runGrid(seed),
  isLiveness: () => false,
  // Errors occur only when something is wrong.
  canHappen: (counter) => counter !== "errors",
};
