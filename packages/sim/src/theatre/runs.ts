import { allCheckers, isAsserted } from "../flease/checkers/index.js";
import { features } from "../flease/features.js";
import { drawPlan } from "../flease/stage/plan.js";
import type { WorldMistakes } from "../flease/stage/stage.js";
import { World } from "../flease/world.js";
import { assumptionsOf, clockModes } from "../kit/clocks.js";
import type { ClockMode } from "../kit/clocks.js";
import { SimRandom } from "../kit/random.js";
import { Recorder } from "./recorder.js";
import type { Recording } from "./recording.js";
import { finished } from "./scenes.js";

/** The removable features of a run. */
export const featureNames: readonly string[] = features.names;

export interface RunRequest {
  readonly seed: number;
  /** Default: by the seed, as `leasehold sim` draws it. */
  readonly mode?: string | undefined;
  readonly without: readonly string[];
  readonly mistakes?: WorldMistakes;
}

/** The run of this seed, as `leasehold sim` runs it, recorded. */
export async function recordRun({
  seed,
  mode: wanted,
  without,
  mistakes = {},
}: RunRequest): Promise<Recording> {
  const mode: ClockMode = clockModes.find((each) => each === wanted) ?? clockModes[seed % clockModes.length]!;
  const random = new SimRandom(seed);
  const known = without.filter((name) => featureNames.includes(name));
  const plan = features.without(drawPlan(seed, mode, random), known);
  const recorder = new Recorder();
  const asserted = (name: Parameters<typeof isAsserted>[0]) => isAsserted(name, assumptionsOf[mode]);
  const world = new World({ plan, random, mistakes, checkers: allCheckers, asserted, watcher: recorder });
  await world.run();
  return finished(recorder, world, 0);
}
