import { allCheckers, isAsserted } from "./checkers/index.js";
import { assumptionsOf, clockModes } from "./clocks.js";
import { Counters } from "./counters.js";
import { withoutFeatures } from "./features.js";
import { drawFairWeather, drawPlan } from "./plan.js";
import { SimRandom } from "./random.js";
import { World } from "./world.js";
/** One run. The seed decides everything in it. */
export async function simulate(options) {
    const { seed, mode, only, mistakes, story } = options;
    const random = new SimRandom(seed);
    const { fairWeather: fair } = options;
    const drawn = fair === undefined ? drawPlan(seed, mode, random) : drawFairWeather(seed, random, fair === "waist");
    const plan = withoutFeatures(drawn, options.without ?? []);
    const world = new World({
        plan,
        random,
        checkers: allCheckers,
        asserted: only
            ? (invariant) => only.includes(invariant)
            : (name) => isAsserted(name, assumptionsOf[mode]),
        ...(mistakes && { mistakes }),
        ...(story && { story }),
    });
    await world.run();
    let { violation } = world;
    const { counters } = world;
    if (fair !== undefined && violation === undefined && counters.lapses > 0) {
        const text = `${counters.lapses} holders lapsed though nothing went wrong`;
        violation = { invariant: "L2", atMs: world.nowMs, event: counters.events, text };
    }
    return { plan, violation, traceHash: world.hash.digest(), counters };
}
/** Runs seed after seed, over the clock modes in turn, until one fails or it is told to stop. */
export async function simulateMany(options) {
    const { firstSeed, goOn, modes = clockModes, ...rest } = options;
    const counters = new Counters();
    for (let runs = 0; goOn(runs); runs += 1) {
        const result = await simulate({ ...rest, seed: firstSeed + runs, mode: modes[runs % modes.length] });
        counters.add(result.counters);
        if (result.violation !== undefined)
            return { counters, failed: result };
    }
    return { counters, failed: undefined };
}
/** One line that says what failed and how to run it again. */
export function failureText(result) {
    const { plan, violation } = result;
    if (violation === undefined)
        return "no violation";
    const { invariant, text, atMs, event } = violation;
    const where = `seed ${plan.seed}, mode ${plan.mode}, ${plan.settings.members.length} members`;
    return `${invariant}: ${text} (${where}, at ${atMs.toFixed(1)} ms, event ${event})`;
}
