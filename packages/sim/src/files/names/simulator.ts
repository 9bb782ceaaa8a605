import type { Simulator } from "../../kit/simulator.js";
import { simulatorOf } from "../simulator.js";
import type { MakeCluster } from "../world.js";
import { simulateNames } from "./run.js";

/** Events of files that are written in place by key. By path no operation counts as settled. */
const notOfNames: ReadonlySet<string> = new Set(["reads", "writes", "settled", "undecided"]);

/** Replicated files by their paths. */
export const simulatorOfNames = (makeCluster: MakeCluster): Simulator => ({
  ...simulatorOf(makeCluster),
  run: (wanted) => simulateNames({ ...wanted, makeCluster }),
  canHappen: (counter) => !notOfNames.has(counter),
});
