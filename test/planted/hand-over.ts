import { type Faults, duringFaults } from "./switches.js";
import { simulateMany } from "../../packages/sim/src/flease/run.js";
import type { SimOptions } from "../../packages/sim/src/flease/run.js";
import type { WorldMistakes } from "../../packages/sim/src/flease/stage/stage.js";
import { hintsAreLost } from "./waist-mistakes.js";

/** A mistake whose only effect is a longer time from a release to the next holder. */
export interface SlowHandOver {
  readonly name: string;
  readonly contenders: NonNullable<SimOptions["fairWeather"]>;
  readonly faults?: Partial<Faults>;
  readonly mistakes?: WorldMistakes;
}

export const slowHandOvers: readonly SlowHandOver[] = [
  {
    name: "P44: a released lease blocks readers",
    contenders: "agents",
    faults: { releasedLeaseBlocksReader: true },
  },
  {
    name: "waiters are not notified of a release",
    contenders: "waist",
    mistakes: { provider: hintsAreLost },
  },
];

/**
 * The number of runs in fair weather, and the largest ratio allowed between the mean hand-over time and the
 * usual one.
 */
export const fairRuns = 20;
export const slowdownMax = 1.4;

/** The mean time from a release to the next tenure, ms. */
export async function handOverMs(mistake: SlowHandOver, planted: boolean): Promise<number> {
  const { counters } = await duringFaults((planted && mistake.faults) || {}, () =>
    simulateMany({
      firstSeed: 1,
      modes: ["c"],
      fairWeather: mistake.contenders,
      goOn: (runs) => runs < fairRuns,
      ...(planted && mistake.mistakes && { mistakes: mistake.mistakes }),
    }),
  );
  return counters.handOverMs / counters.handOvers;
}
