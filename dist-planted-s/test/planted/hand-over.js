import { duringFaults } from "../../src/flease/planted-faults.js";
import { simulateMany } from "../../src/sim/run.js";
import { hintsAreLost } from "./waist-mistakes.js";
export const slowHandOvers = [
    {
        name: "P44: a released lease blocks readers",
        contenders: "agents",
        faults: { releasedLeaseBlocksReader: true },
    },
    { name: "waiters are not told of a release", contenders: "waist", mistakes: { provider: hintsAreLost } },
];
/** Runs in fair weather, and how much slower than usual a released resource may change hands at most. */
export const fairRuns = 20;
export const slowdownMax = 1.4;
/** The mean time from a release to the next tenure. */
export async function handOverMs(mistake, planted) {
    const { counters } = await duringFaults((planted && mistake.faults) || {}, () => simulateMany({
        firstSeed: 1,
        modes: ["c"],
        fairWeather: mistake.contenders,
        goOn: (runs) => runs < fairRuns,
        ...(planted && mistake.mistakes && { mistakes: mistake.mistakes }),
    }));
    return counters.handOverMs / counters.handOvers;
}
