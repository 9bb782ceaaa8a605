import { duringFaults, withFaults } from "./switches.js";
import { noBounds } from "../../packages/sim/src/explorer/bounds.js";
import { FleaseModel, fleaseWorld } from "../../packages/sim/src/explorer/flease-model.js";
import { explore } from "../../packages/sim/src/explorer/search.js";
import type { Exploration } from "../../packages/sim/src/explorer/search.js";
import { simulateMany } from "../../packages/sim/src/flease/run.js";
import type { BatchResult } from "../../packages/sim/src/flease/run.js";
import type { Explored } from "./explored.js";
import type { Simulated } from "./simulated.js";

/** If a change of the protocol has made a seed useless, the search goes on for this many runs. */
const runsMax = 2_000;

/**
 * Explores the small world of one mistake, with or without the mistake, and checks only the invariant that it
 * breaks.
 */
export function find({ faults, world, bounds, breaks }: Explored, planted = true): Exploration {
  const { rateTestOff = false, netGOff = false } = faults;
  const checkGuards = breaks === "I4";
  return withFaults(planted ? faults : { rateTestOff, netGOff }, () =>
    explore(new FleaseModel(fleaseWorld(world)), { bounds: { ...noBounds, checkGuards, ...bounds } }),
  );
}

/**
 * Runs one seed after another with the mistake planted, beginning with the seed known to show it, until the
 * invariant is broken.
 */
export function search(mistake: Simulated): Promise<BatchResult> {
  const { faults, waistFaults, mistakes, without, mode, breaks, seed } = mistake;
  const look = () =>
    simulateMany({
      firstSeed: seed,
      modes: [mode],
      only: [breaks],
      without,
      mistakes,
      goOn: (runs) => runs < runsMax,
    });
  return duringFaults(faults, () => duringFaults(waistFaults, look));
}
