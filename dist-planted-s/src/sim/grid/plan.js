import { clockRateErrorDefault } from "../../lease/clock-rates.js";
import { fleaseSettings } from "../../flease/settings.js";
import { SimRandom } from "../random.js";
/** What must hold in every run of the grid, by the numbers of `docs/flease.md`. */
export const gridInvariants = ["I1", "I2", "I4", "I12"];
/** ρ: as it comes, or nearly as much as it may be. */
const clockRateErrors = [clockRateErrorDefault, clockRateErrorDefault, 0.45];
/** A clock that nobody corrects. */
const quartz = 0.0002;
/** Swarm style: each feature is off in about half of the runs (7.1). */
export function gridPlan(seed, { mistake, asserted = gridInvariants, plan } = {}) {
    const random = new SimRandom(seed);
    const stores = random.chance(0.8) ? 3 : 5;
    const ttlMaxMs = random.magnitude(400, 2_000);
    const some = (meanMs) => (random.chance(0.5) ? random.between(0.5, 2) * meanMs : Infinity);
    const settings = fleaseSettings({
        members: Array.from({ length: stores }, (_, index) => `store-${index}`),
        cellSize: stores,
        maxClockSkewMs: random.magnitude(4, ttlMaxMs / 8),
        ttlMaxMs,
        rpcTimeoutMs: random.magnitude(10, ttlMaxMs / 6),
        clockRateError: random.pick(clockRateErrors),
    });
    return {
        seed,
        settings,
        clients: 2 + random.below(4),
        resources: 1 + random.below(2),
        durationMs: 25 * ttlMaxMs,
        latencyMs: random.magnitude(0.2, settings.rpcTimeoutMs / 2),
        lateness: random.chance(0.5) ? random.between(0, 0.2) : 0,
        clockDrift: random.chance(0.5) ? quartz : settings.clockRateError,
        wildRates: random.chance(0.5),
        stepsTogether: random.chance(0.3),
        every: {
            crashMs: some(4 * ttlMaxMs),
            pauseMs: some(4 * ttlMaxMs),
            silenceMs: some(4 * ttlMaxMs),
            // Only what happens often enough is found soon.
            forgetMs: mistake === "forgottenCountsAtOnce" ? 2 * ttlMaxMs : some(6 * ttlMaxMs),
            clockMs: some(ttlMaxMs / 2),
        },
        mistake,
        asserted,
        ...plan,
    };
}
