import { allCheckers, isAsserted } from "./checkers/index.js";
import { assumptionsOf, clockModes } from "../kit/clocks.js";
import type { ClockMode } from "../kit/clocks.js";
import { type FleaseCounters, fleaseCounters } from "./counters.js";
import { withoutFeatures } from "./features.js";
import type { Feature } from "./features.js";
import { drawFairWeather, drawPlan, withGreedyClient } from "./plan.js";
import type { RunPlan } from "./plan.js";
import { SimRandom } from "../kit/random.js";
import { addCounters } from "../kit/counters.js";
import type { Violation } from "../kit/violation.js";
import type { Invariant } from "./invariants.js";
import { World } from "./world.js";
import type { WorldMistakes } from "./world.js";

export interface SimOptions {
  readonly seed: number;
  readonly mode: ClockMode;
  /** Contenders hammer, by themselves or on the waist, and nothing goes wrong: the run checks that the holder never lapses (L2). */
  readonly fairWeather?: "agents" | "waist";
  /** One more client wants more names than members keep. */
  readonly greedy?: boolean;
  /** Ends the run only at violations of these, whatever the mode promises. */
  readonly only?: readonly Invariant[];
  readonly mistakes?: WorldMistakes;
  /** Features that this run does not have, whatever its seed says. */
  readonly without?: readonly Feature[];
  readonly story?: (line: string) => void;
}

export interface SimResult {
  readonly plan: RunPlan;
  readonly violation: Violation<Invariant> | undefined;
  /** Of every event of the run: two runs of one seed must agree. */
  readonly traceHash: string;
  readonly counters: FleaseCounters;
}

/** One run. The seed decides everything in it. */
export async function simulate(options: SimOptions): Promise<SimResult> {
  const { seed, mode, only, mistakes, story } = options;
  const random = new SimRandom(seed);
  const { fairWeather: fair } = options;
  const drawn =
    fair === undefined ? drawPlan(seed, mode, random) : drawFairWeather(seed, random, fair === "waist");
  const crowded = options.greedy === true ? withGreedyClient(drawn) : drawn;
  const plan = withoutFeatures(crowded, options.without ?? []);
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
  return { plan, violation: world.violation, traceHash: world.hash.digest(), counters };
}

export interface BatchResult {
  readonly counters: FleaseCounters;
  /** The first run that failed. */
  readonly failed: SimResult | undefined;
}

export interface BatchOptions extends Omit<SimOptions, "seed" | "mode" | "story"> {
  readonly firstSeed: number;
  readonly modes?: readonly ClockMode[];
  /** Asked before each run. */
  readonly goOn: (runs: number) => boolean;
}

/** Runs seed after seed, over the clock modes in turn, until one fails or it is told to stop. */
export async function simulateMany(options: BatchOptions): Promise<BatchResult> {
  const { firstSeed, goOn, modes = clockModes, ...rest } = options;
  const counters = fleaseCounters();
  for (let runs = 0; goOn(runs); runs += 1) {
    const result = await simulate({ ...rest, seed: firstSeed + runs, mode: modes[runs % modes.length]! });
    addCounters(counters, result.counters);
    if (result.violation !== undefined) return { counters, failed: result };
  }
  return { counters, failed: undefined };
}

/** One line that says what failed and how to run it again. */
export function failureText(result: SimResult): string {
  const { plan, violation } = result;
  if (violation === undefined) return "no violation";
  const { invariant, text, atMs, event } = violation;
  const where = `seed ${plan.seed}, mode ${plan.mode}, ${plan.settings.members.length} members`;
  return `${invariant}: ${text} (${where}, at ${atMs.toFixed(1)} ms, event ${event})`;
}
