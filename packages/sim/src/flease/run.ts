import { allCheckers, isAsserted } from "./checkers/index.js";
import { assumptionsOf, clockModes } from "../kit/clocks.js";
import type { ClockMode } from "../kit/clocks.js";
import { type FleaseCounters, fleaseCounters } from "./stage/counters.js";
import { features } from "./features.js";
import { drawFairWeather, drawPlan, withGreedyClient } from "./stage/plan.js";
import type { RunPlan } from "./stage/plan.js";
import { withManyMembers } from "./stage/views-plan.js";
import { SimRandom } from "../kit/random.js";
import { type Batch, type BatchOptions, type SimResult, simulateSeeds } from "../kit/simulator.js";
import type { Invariant } from "./stage/invariants.js";
import { World } from "./world.js";
import type { WorldMistakes } from "./stage/stage.js";

export interface SimOptions {
  readonly seed: number;
  readonly mode: ClockMode;
  /**
   * Contenders ask all the time, directly or through the waist, and no fault occurs: the run checks that the
   * holder never loses its lease (L2).
   */
  readonly fairWeather?: "agents" | "waist";
  /** An additional client wants more names than members keep. */
  readonly greedy?: boolean;
  /** The cluster has many members, which change. */
  readonly many?: boolean;
  /** The run ends only at violations of these, whatever the mode promises. */
  readonly only?: readonly Invariant[];
  readonly mistakes?: WorldMistakes;
  /** Features to remove from this run, whatever its seed says. */
  readonly without?: readonly string[] | undefined;
  readonly story?: ((line: string) => void) | undefined;
}

export type FleaseResult = SimResult<RunPlan, Invariant, FleaseCounters>;

export type BatchResult = Batch<FleaseResult>;

/** One run. The seed decides everything in it. */
export async function simulate(options: SimOptions): Promise<FleaseResult> {
  const { seed, mode, only, mistakes, story } = options;
  const random = new SimRandom(seed);
  const { fairWeather: fair } = options;
  const drawn =
    fair === undefined ? drawPlan(seed, mode, random) : drawFairWeather(seed, random, fair === "waist");
  const crowded = options.greedy === true ? withGreedyClient(drawn) : drawn;
  const peopled = options.many === true ? withManyMembers(crowded) : crowded;
  const plan = features.without(peopled, options.without);
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
  const { counters } = world;
  if (fair !== undefined && counters.lapses > 0)
    world.report("L2", `${counters.lapses} holders lapsed though nothing went wrong`);
  const where = `mode ${mode}, ${plan.settings.members.length} members`;
  return { seed, plan, where, violation: world.violation, traceHash: world.hash.digest(), counters };
}

/** Runs seed after seed, over the clock modes in turn. */
export function simulateMany({
  modes = clockModes,
  ...options
}: BatchOptions<Omit<SimOptions, "mode">> & { readonly modes?: readonly ClockMode[] }): Promise<BatchResult> {
  const modeOf = (seed: number) => modes[(seed - options.firstSeed) % modes.length]!;
  const run = (one: Omit<SimOptions, "mode">) => simulate({ ...one, mode: modeOf(one.seed) });
  return simulateSeeds(run, fleaseCounters(), options);
}
