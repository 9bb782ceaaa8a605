import { fleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import type { FleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import { clockRateErrorDefault } from "leasehold/inner/common/clock-rates.js";
import { assumptionsOf } from "../../kit/clocks.js";
import type { ClockMode } from "../../kit/clocks.js";
import { SimRandom } from "../../kit/random.js";
import { allOnWaist, drawWaist, noWaist } from "./waist-plan.js";
import { drawViews, withoutViews } from "./views-plan.js";
import type { ViewsPlan } from "./views-plan.js";
import type { Populated, WaistPlan } from "./waist-plan.js";

/** The network. Times in ms, rates as probabilities for one message. */
export interface NetworkPlan {
  readonly lossRate: number;
  /** The additional loss rate of releases. */
  readonly releaseLossRate: number;
  readonly duplicationRate: number;
  readonly meanDelayMs: number;
  /** Share of messages that arrive very late, and the longest delay. */
  readonly tailRate: number;
  readonly tailMaxMs: number;
  /** Nodes read all arrived messages at this interval, ms; 0: each message when it arrives. */
  readonly readEveryMs: number;
  /** Messages of one node to another arrive in the order in which they were sent, as on a connection. */
  readonly inOrder?: boolean;
}

/** Nothing is lost, repeated or late for long. */
export const faultlessNetwork = {
  lossRate: 0,
  releaseLossRate: 0,
  duplicationRate: 0,
  tailRate: 0,
  tailMaxMs: 0,
} as const satisfies Partial<NetworkPlan>;

/** Mean time between two disturbances of one kind anywhere in the world; `Infinity` when the run has none. */
export interface ChaosPlan {
  readonly crashEveryMs: number;
  readonly downMaxMs: number;
  readonly blackoutEveryMs: number;
  readonly pauseEveryMs: number;
  readonly pauseMaxMs: number;
  readonly partitionEveryMs: number;
  readonly partitionMaxMs: number;
  readonly offsetEveryMs: number;
  /** The largest step of a wild wall clock. */
  readonly offsetStepMaxMs: number;
  readonly rateEveryMs: number;
  /** The longest time that a steady clock runs wild. */
  readonly rateMaxMs: number;
  readonly stepTogetherEveryMs: number;
  /** Clients that leave, and are back later as others. */
  readonly clientEveryMs: number;
  /** Machines that are suspended, and how long at most. */
  readonly suspendEveryMs: number;
  readonly suspendMaxMs: number;
  /** Time services that let both clocks of a machine run faster or slower by ρ, as a correction does. */
  readonly slewEveryMs: number;
  readonly slewMaxMs: number;
}

/** The workload of programs. */
export interface WorkloadPlan {
  readonly thinkMeanMs: number;
  /** Probability that an acquisition tries one round trip first. */
  readonly fastRate: number;
  /** Probability that an acquisition waits to be notified of a release. */
  readonly waitingRate: number;
  readonly cancelRate: number;
  /** Probability, at each turn of a holder, that it releases. */
  readonly releaseRate: number;
  /** Probability that a holder renews too late, and that a program stops late after a loss. */
  readonly lazyRate: number;
  readonly patienceMaxMs: number;
  /** Whether leases differ in length. */
  readonly mixedTtl: boolean;
}

/** The plan of a run, decided before it begins. */
export interface RunPlan extends Populated {
  readonly seed: number;
  readonly mode: ClockMode;
  /** The duration of faults, and of the calm after them. */
  readonly stormMs: number;
  readonly calmMs: number;
  readonly network: NetworkPlan;
  readonly chaos: ChaosPlan;
  readonly workload: WorkloadPlan;
  readonly waist: WaistPlan;
  /** Undefined where the members stay. */
  readonly views?: ViewsPlan | undefined;
  /** Wall clocks show whole milliseconds. */
  readonly wholeMs: boolean;
  /** Messages carry clock bounds, and impossible ones are refused (3.10). */
  readonly skewWatch: boolean;
  /** The mean delay of timers. */
  readonly timersLateMs: number;
}

/** A storm lasts this many longest leases, so that runs with long leases see as much as others. */
const stormLeases = 14;

/** The first of the other streams; seeds of runs are far smaller. */
const waistStream = 2 ** 48;
const suspensionStream = 2 ** 49;
const rateStream = 2 ** 50;
const lostReleaseStream = 2 ** 51;
const timerStream = 2 ** 52;
const viewsStream = 2 ** 52 + 2 ** 51;

/** Share of the runs in which releases get lost. */
const lostReleaseRate = 0.15;

/** Draws a run. A feature is off in about half of the runs, so that rare combinations occur. */
export function drawPlan(seed: number, mode: ClockMode, random: SimRandom): RunPlan {
  const settings = drawSettings(random);
  const n = settings.members.length;
  const clients = random.below(4);
  const resources = ["r0", "r1", "r2"].slice(0, 1 + random.below(3));
  const chaos = drawChaos(random, settings, mode);
  const plan: RunPlan = {
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
    timersLateMs: drawTimersLateMs(settings, new SimRandom(seed + timerStream)),
  };
  const suspended = drawSuspensions(plan, new SimRandom(seed + suspensionStream));
  const slewed = drawRates(suspended, new SimRandom(seed + rateStream));
  const rushed = drawLostReleases(slewed, new SimRandom(seed + lostReleaseStream));
  const { readEveryMs, clientEveryMs, ...peopled } = drawWaist(rushed, new SimRandom(seed + waistStream));
  const drawn: RunPlan = {
    ...rushed,
    ...peopled,
    network: { ...rushed.network, readEveryMs },
    chaos: { ...rushed.chaos, clientEveryMs },
  };
  return drawViews(drawn, new SimRandom(seed + viewsStream));
}

/** Late timers model a busy machine, up to an overloaded one. */
function drawTimersLateMs({ rpcTimeoutMs }: FleaseSettings, random: SimRandom): number {
  return random.chance(0.5) ? 0 : random.magnitude(0.1, rpcTimeoutMs / 2);
}

/** No machine stops, and none is cut off. */
const steadyMachines = {
  crashEveryMs: Infinity,
  blackoutEveryMs: Infinity,
  pauseEveryMs: Infinity,
  partitionEveryMs: Infinity,
};

/** Drawn from a stream of its own, so the rest of the run stays the same. */
function drawSuspensions(plan: RunPlan, random: SimRandom): RunPlan {
  const { mode, chaos, settings, workload } = plan;
  const { suspends, wall, rate, stepsTogether } = assumptionsOf[mode];
  const longest = settings.ttlMaxMs;
  // Mode g is about nothing else: wall clocks are wrong when a machine wakes.
  const always = rate && !wall;
  if (!suspends || (!always && random.chance(0.4))) return plan;
  const suspendEveryMs = random.magnitude(0.7, 4) * longest;
  const suspendMaxMs = random.pick([0.7, 2, 5]) * longest;
  const offsetEveryMs = always ? Infinity : chaos.offsetEveryMs;
  const suspended = { ...plan, chaos: { ...chaos, offsetEveryMs, suspendEveryMs, suspendMaxMs } };
  if (!stepsTogether || random.chance(0.3)) return suspended;
  // Wall clocks step back while a holder sleeps whose lease every member has discarded.
  const clocks = { rateEveryMs: Infinity, stepTogetherEveryMs: Infinity };
  return {
    ...suspended,
    chaos: { ...suspended.chaos, ...steadyMachines, ...clocks, suspendMaxMs: 7 * longest },
    workload: { ...workload, thinkMeanMs: random.magnitude(1, 4) * longest, releaseRate: 0.5 },
    network: { ...plan.network, lossRate: 0, tailRate: 0 },
  };
}

/**
 * The number of resources that each member keeps in a run with a greedy client: the tenth reserved for
 * clients with few resources is more than the number of other resources. It is also the number of names that
 * the greedy client wants.
 */
const crowdedResources = 40;
const greedyNames = 44;
const greedyPrefix = "greedy";

export function isGreedy(resource: string): boolean {
  return resource.startsWith(greedyPrefix);
}

/** Such a run has many more events than others, and its events happen early, so it is short. */
const crowdedStormLeases = 4;

/** Adds a client that wants more names than members keep. */
export function withGreedyClient(plan: RunPlan): RunPlan {
  const { settings, clients, agents } = plan;
  const node = settings.members.length + clients;
  const greedy = Array.from({ length: greedyNames }, (_, index) => ({
    node,
    resource: `${greedyPrefix}${index}`,
  }));
  return {
    ...plan,
    settings: { ...settings, resourcesMax: crowdedResources },
    clients: clients + 1,
    agents: [...agents, ...greedy],
    stormMs: crowdedStormLeases * settings.ttlMaxMs,
    calmMs: 0,
  };
}

/** In some runs ρ has its default, and time services slew at its limit (chrony: 0.083). */
function drawRates(plan: RunPlan, random: SimRandom): RunPlan {
  const { chaos, mode, workload } = plan;
  const { rate, suspends, wall } = assumptionsOf[mode];
  if (!rate || suspends || random.chance(0.6)) return plan;
  const { members, maxClockSkewMs, ttlMaxMs, rpcTimeoutMs } = plan.settings;
  const clockRateError = clockRateErrorDefault;
  const settings = fleaseSettings({ members, maxClockSkewMs, clockRateError, ttlMaxMs, rpcTimeoutMs });
  // Runs in which the steady clock alone excludes: holders reach the end of their leases, and no member refuses
  // them for a wrong wall clock.
  const toTheEnd = !wall && random.chance(0.8);
  const lazyRate = random.between(0.2, 0.6);
  return {
    ...plan,
    settings,
    ...(toTheEnd && { skewWatch: false, workload: { ...workload, lazyRate } }),
    calmMs: plan.calmMs === 0 ? 0 : calmMs(settings, chaos.pauseMaxMs),
    chaos: {
      ...chaos,
      slewEveryMs: random.magnitude(0.1, 1) * ttlMaxMs,
      slewMaxMs: random.pick(wall ? [1, 4] : [4, 4 * stormLeases]) * ttlMaxMs,
      // A steady clock that is wrong by this much while the wall clock is right is soon detected, and its
      // node restarts.
      rateEveryMs: random.chance(0.8) ? Infinity : chaos.rateEveryMs,
    },
  };
}

/**
 * In some runs a released lease often remains at some acceptors. Then the participant that released it
 * contends with waiters, in overlapping two-phase attempts.
 */
function drawLostReleases(plan: RunPlan, random: SimRandom): RunPlan {
  if (!random.chance(lostReleaseRate)) return plan;
  const { chaos, network, settings, workload } = plan;
  const { ttlMaxMs, rpcTimeoutMs } = settings;
  return {
    ...plan,
    chaos: { ...chaos, ...steadyMachines },
    network: {
      ...network,
      lossRate: 0,
      releaseLossRate: random.between(0.2, 0.7),
      meanDelayMs: random.between(0.1, 0.5) * rpcTimeoutMs,
    },
    workload: {
      ...workload,
      fastRate: 0,
      cancelRate: 0,
      releaseRate: 0.7,
      lazyRate: 0,
      thinkMeanMs: random.magnitude(0.02, 0.3) * ttlMaxMs,
      patienceMaxMs: 3 * ttlMaxMs,
    },
  };
}

/** A clock fault must last a second before it counts, and is looked for now and then. */
const clockFaultMs = 1_500;

/**
 * The time after the last fault within which some waiter must acquire each resource (L1). It covers the end
 * of pauses, a recovery wait for each clock fault that is then detected, and the expiry of leases without a
 * holder.
 */
function calmMs(settings: FleaseSettings, pauseMaxMs: number): number {
  const waitMs = Math.max(settings.waitWallMs, settings.waitRateMs);
  return pauseMaxMs + clockFaultMs + 2 * waitMs + 3 * settings.ttlMaxMs;
}

/** Chooses a run in which nothing goes wrong and several programs, on the waist or not, hammer at one resource (L2). */
export function drawFairWeather(seed: number, random: SimRandom, onWaist: boolean): RunPlan {
  const settings = drawSettings(random);
  const never = Infinity;
  const nodes = settings.members.length + 2;
  const meanDelayMs = settings.rpcTimeoutMs / 40;
  return {
    ...withoutViews(drawPlan(seed, "c", random)),
    settings,
    clients: 2,
    resources: ["r0"],
    agents: Array.from({ length: nodes }, (_, node) => ({ node, resource: "r0" })),
    stormMs: stormLeases * settings.ttlMaxMs,
    calmMs: 0,
    network: { ...faultlessNetwork, meanDelayMs, readEveryMs: 0, inOrder: true },
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
      slewEveryMs: never,
      slewMaxMs: 0,
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
    timersLateMs: 0,
    waist: onWaist ? allOnWaist(nodes) : noWaist,
  };
}

function drawSettings(random: SimRandom): FleaseSettings {
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

function drawAgents(random: SimRandom, nodes: number, resources: readonly string[]) {
  const everybody = random.chance(0.3);
  const agents: { node: number; resource: string }[] = [];
  for (const resource of resources) {
    const wanting = Array.from({ length: nodes }, (_, node) => node).filter(
      () => everybody || random.chance(0.5),
    );
    // At least two want it: otherwise there is nothing to exclude.
    for (let node = 0; wanting.length < 2; node += 1) if (!wanting.includes(node)) wanting.push(node);
    for (const node of wanting) agents.push({ node, resource });
  }
  return agents;
}

function drawNetwork(random: SimRandom, settings: FleaseSettings): NetworkPlan {
  const sometimes = (value: number) => (random.chance(0.5) ? value : 0);
  return {
    lossRate: sometimes(random.between(0, 0.4)),
    releaseLossRate: 0,
    duplicationRate: sometimes(random.between(0, 0.2)),
    meanDelayMs: random.magnitude(settings.rpcTimeoutMs / 100, settings.rpcTimeoutMs / 2),
    tailRate: sometimes(random.between(0, 0.15)),
    tailMaxMs: random.between(0.5, 4) * settings.ttlMaxMs,
    readEveryMs: 0,
  };
}

function drawChaos(random: SimRandom, settings: FleaseSettings, mode: ClockMode): ChaosPlan {
  const longest = settings.ttlMaxMs;
  const { stepsTogether, rate, wall } = assumptionsOf[mode];
  const sometimes = (low: number, high: number) =>
    random.chance(0.5) ? random.magnitude(low * longest, high * longest) : Infinity;
  // Each clock fault costs its acceptor a recovery wait: with many faults nothing else would happen.
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
    slewEveryMs: Infinity,
    slewMaxMs: 0,
  };
}

function drawWorkload(random: SimRandom, settings: FleaseSettings): WorkloadPlan {
  const sometimes = (value: number) => (random.chance(0.5) ? value : 0);
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
