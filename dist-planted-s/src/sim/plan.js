import { fleaseSettings } from "../flease/settings.js";
import { assumptionsOf } from "./clocks.js";
import { SimRandom } from "./random.js";
import { allOnWaist, drawWaist, noWaist } from "./waist/waist-plan.js";
/** A storm lasts this many longest leases, so that runs with long leases see as much as others. */
const stormLeases = 14;
/** Where the seeds of the other streams begin; those of runs are far smaller. */
const waistStream = 2 ** 48;
const suspensionStream = 2 ** 49;
/** Draws a run. A feature is off in about half of the runs: rare combinations would drown otherwise. */
export function drawPlan(seed, mode, random) {
    const settings = drawSettings(random);
    const n = settings.members.length;
    const clients = random.below(4);
    const resources = ["r0", "r1", "r2"].slice(0, 1 + random.below(3));
    const chaos = drawChaos(random, settings, mode);
    const plan = {
        seed,
        mode,
        settings,
        clients,
        resources,
        agents: drawAgents(random, n + clients, resources),
        stormMs: stormLeases * settings.ttlMaxMs,
        calmMs: random.chance(0.4) ? calmMs(settings, chaos.pauseMaxMs) : 0,
        network: drawNetwork(random, settings),
        chaos,
        workload: drawWorkload(random, settings),
        waist: noWaist,
        wholeMs: random.chance(0.5),
        skewWatch: random.chance(0.5),
    };
    const suspended = drawSuspensions(plan, new SimRandom(seed + suspensionStream));
    return drawWaist(suspended, new SimRandom(seed + waistStream));
}
/** Came to the world later, and is drawn from a stream of its own: the rest of a run is as if it were not there. */
function drawSuspensions(plan, random) {
    const { mode, chaos, settings, workload } = plan;
    const { suspends, wall, rate, stepsTogether } = assumptionsOf[mode];
    const longest = settings.ttlMaxMs;
    // Mode g is about nothing else: wall clocks are wrong when a machine wakes.
    const always = rate && !wall;
    if (!suspends || (!always && random.chance(0.4)))
        return plan;
    const suspendEveryMs = random.magnitude(0.7, 4) * longest;
    const suspendMaxMs = random.pick([0.7, 2, 5]) * longest;
    const offsetEveryMs = always ? Infinity : chaos.offsetEveryMs;
    const suspended = { ...plan, chaos: { ...chaos, offsetEveryMs, suspendEveryMs, suspendMaxMs } };
    if (!stepsTogether || random.chance(0.3))
        return suspended;
    // Walls step back while somebody sleeps whose lease nobody remembers: nobody has wanted the resource for a while.
    const never = Infinity;
    const nothingElse = {
        crashEveryMs: never,
        blackoutEveryMs: never,
        pauseEveryMs: never,
        partitionEveryMs: never,
    };
    const clocks = { rateEveryMs: never, stepTogetherEveryMs: never };
    return {
        ...suspended,
        chaos: { ...suspended.chaos, ...nothingElse, ...clocks, suspendMaxMs: 7 * longest },
        workload: { ...workload, thinkMeanMs: random.magnitude(1, 4) * longest, releaseRate: 0.5 },
        network: { ...plan.network, lossRate: 0, tailRate: 0 },
    };
}
/** A clock fault must last a second before it counts, and is looked for now and then. */
const clockFaultMs = 1_500;
/**
 * How long after the storm some waiting node must have acquired each resource (L1): pauses run out, clock faults
 * are noticed, each of which costs a recovery wait, and then leases that nobody holds.
 */
function calmMs(settings, pauseMaxMs) {
    return pauseMaxMs + clockFaultMs + 2 * settings.waitWallMs + 3 * settings.ttlMaxMs;
}
/** Chooses a run in which nothing goes wrong and several programs, on the waist or not, hammer at one resource (L2). */
export function drawFairWeather(seed, random, onWaist) {
    const settings = drawSettings(random);
    const never = Infinity;
    const nodes = settings.members.length + 2;
    const meanDelayMs = settings.rpcTimeoutMs / 40;
    return {
        ...drawPlan(seed, "c", random),
        settings,
        clients: 2,
        resources: ["r0"],
        agents: Array.from({ length: nodes }, (_, node) => ({ node, resource: "r0" })),
        stormMs: stormLeases * settings.ttlMaxMs,
        calmMs: 0,
        network: { lossRate: 0, duplicationRate: 0, meanDelayMs, tailRate: 0, tailMaxMs: 0, readEveryMs: 0 },
        chaos: {
            crashEveryMs: never,
            downMaxMs: 0,
            blackoutEveryMs: never,
            pauseEveryMs: never,
            pauseMaxMs: 0,
            partitionEveryMs: never,
            partitionMaxMs: 0,
            offsetEveryMs: never,
            offsetStepMaxMs: 0,
            rateEveryMs: never,
            rateMaxMs: 0,
            stepTogetherEveryMs: never,
            clientEveryMs: never,
            suspendEveryMs: never,
            suspendMaxMs: 0,
        },
        workload: {
            thinkMeanMs: 20,
            fastRate: 0,
            waitingRate: 1,
            cancelRate: 0,
            releaseRate: 0.2,
            lazyRate: 0,
            patienceMaxMs: 2 * settings.ttlMaxMs,
            mixedTtl: false,
        },
        waist: onWaist ? allOnWaist(nodes) : noWaist,
    };
}
function drawSettings(random) {
    const n = random.pick([3, 3, 5]);
    const ttlMaxMs = Math.round(random.between(1_500, 5_000));
    const maxClockSkewMs = Math.round(random.magnitude(10, ttlMaxMs / 5));
    const rpcMax = (ttlMaxMs - 2 * maxClockSkewMs) / 5;
    return fleaseSettings({
        members: Array.from({ length: n }, (_, index) => `m${index}`),
        maxClockSkewMs,
        clockRateError: random.pick([0.001, 0.01]),
        ttlMaxMs,
        rpcTimeoutMs: Math.round(random.between(rpcMax / 4, rpcMax)),
    });
}
function drawAgents(random, nodes, resources) {
    const everybody = random.chance(0.3);
    const agents = [];
    for (const resource of resources) {
        const wanting = Array.from({ length: nodes }, (_, node) => node).filter(() => everybody || random.chance(0.5));
        // At least two want it: otherwise there is nothing to exclude.
        for (let node = 0; wanting.length < 2; node += 1)
            if (!wanting.includes(node))
                wanting.push(node);
        for (const node of wanting)
            agents.push({ node, resource });
    }
    return agents;
}
function drawNetwork(random, settings) {
    const sometimes = (value) => (random.chance(0.5) ? value : 0);
    return {
        lossRate: sometimes(random.between(0, 0.4)),
        duplicationRate: sometimes(random.between(0, 0.2)),
        meanDelayMs: random.magnitude(settings.rpcTimeoutMs / 100, settings.rpcTimeoutMs / 2),
        tailRate: sometimes(random.between(0, 0.15)),
        tailMaxMs: random.between(0.5, 4) * settings.ttlMaxMs,
        readEveryMs: 0,
    };
}
function drawChaos(random, settings, mode) {
    const longest = settings.ttlMaxMs;
    const { stepsTogether, rate, wall } = assumptionsOf[mode];
    const sometimes = (low, high) => random.chance(0.5) ? random.magnitude(low * longest, high * longest) : Infinity;
    // Each fault of a clock costs its acceptor a recovery wait: with many, nothing else would happen.
    const broken = random.magnitude(0.3 * longest, 15 * longest);
    return {
        crashEveryMs: sometimes(0.5, 5),
        downMaxMs: random.pick([0, 0.3, 3]) * longest,
        blackoutEveryMs: random.chance(0.2) ? 6 * longest : Infinity,
        pauseEveryMs: sometimes(0.2, 3),
        pauseMaxMs: random.pick([0.2, 1.2, 4]) * longest,
        partitionEveryMs: sometimes(0.3, 3),
        partitionMaxMs: random.pick([0.1, 1, 4]) * longest,
        // With both clocks broken every other run has snapshots only, which break both at once.
        offsetEveryMs: wall ? sometimes(0.1, 2) : rate || random.chance(0.5) ? broken : Infinity,
        offsetStepMaxMs: random.pick([0.5, 2, 20]) * longest,
        rateEveryMs: rate ? sometimes(0.5, 4) : broken,
        rateMaxMs: random.pick([0.3, 1, 4]) * longest,
        stepTogetherEveryMs: stepsTogether ? broken : Infinity,
        clientEveryMs: Infinity,
        suspendEveryMs: Infinity,
        suspendMaxMs: 0,
    };
}
function drawWorkload(random, settings) {
    const sometimes = (value) => (random.chance(0.5) ? value : 0);
    return {
        thinkMeanMs: random.magnitude(10, settings.ttlMaxMs),
        fastRate: random.pick([0, 0.5, 1]),
        waitingRate: random.pick([0, 0.5, 1]),
        cancelRate: sometimes(random.between(0, 0.3)),
        releaseRate: sometimes(random.between(0, 0.5)),
        lazyRate: sometimes(random.between(0, 0.4)),
        patienceMaxMs: random.pick([0.1, 1, 3]) * settings.ttlMaxMs,
        mixedTtl: random.chance(0.5),
    };
}
