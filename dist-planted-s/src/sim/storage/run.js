import { SimRandom } from "../random.js";
import { allStorageCheckers } from "./checkers/index.js";
import { StorageCounters } from "./counters.js";
import { withoutStorageFeatures } from "./features.js";
import { drawStoragePlan, grounds } from "./plan.js";
import { StorageWorld } from "./world.js";
/** One run on shared storage. The seed decides everything in it. */
export function simulateStorage(options) {
    const { seed, only, story } = options;
    const random = new SimRandom(seed);
    const ground = options.ground ?? grounds[seed % grounds.length];
    const drawn = { ...drawStoragePlan(seed, ground, random), ...options.plan };
    const plan = withoutStorageFeatures(drawn, options.without ?? []);
    const world = new StorageWorld({
        plan,
        random,
        story,
        checkers: (view, report) => allStorageCheckers(view, (invariant, text) => {
            if (only === undefined || only.includes(invariant))
                report(invariant, text);
        }),
    });
    world.run();
    return { plan, violation: world.violation, traceHash: world.hash.digest(), counters: world.counters };
}
/** Runs seed after seed until one fails or it is told to stop. */
export function simulateStorageMany(options) {
    const { firstSeed, goOn, ...rest } = options;
    const counters = new StorageCounters();
    for (let runs = 0; goOn(runs); runs += 1) {
        const result = simulateStorage({ ...rest, seed: firstSeed + runs });
        counters.add(result.counters);
        if (result.violation !== undefined)
            return { counters, failed: result };
    }
    return { counters, failed: undefined };
}
/** One line that says what failed and how to run it again. */
export function storageFailureText({ plan, violation }) {
    if (violation === undefined)
        return "no violation";
    const { invariant, text, atMs, event } = violation;
    return `${invariant}: ${text} (seed ${plan.seed}, ground ${plan.ground}, ${atMs.toFixed(1)} ms, event ${event})`;
}
