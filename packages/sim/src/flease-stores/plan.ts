import { fleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import type { FleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import { SimRandom } from "../kit/random.js";
import type { Invariant } from "../flease/stage/invariants.js";

/** The invariants of every run of the grid, by the numbers of `docs/internals/flease.md`. */
export const gridInvariants: readonly Invariant[] = ["I1", "I2", "I4", "I12"];

/** A planted mistake between an acceptor and its store. */
export type GridMistake =
  /** The reply is sent before the write is acknowledged. */
  | "replyBeforeWrite"
  /** After a conflict nothing is recomputed: a result from an older entry overwrites the newer one. */
  | "staleWriteWins";

/** A clock that nobody corrects. */
const quartz = 0.0002;

/** The plan of a run. */
export interface GridPlan {
  readonly seed: number;
  readonly settings: FleaseSettings;
  readonly clients: number;
  readonly resources: number;
  readonly durationMs: number;
  /** Mean latency of a request, and of its answer. */
  readonly latencyMs: number;
  /** Probability that an operation takes effect and nobody hears of it, or much later. */
  readonly lateness: number;
  /** The rate error of steady clocks, unless `wildRates`: that of a quartz, or up to ρ. */
  readonly clockDrift: number;
  /** Steady clocks run at any rate, and stand still at times. */
  readonly wildRates: boolean;
  /** The mean delay of timers. */
  readonly timersLateMs: number;
  /** The wall clocks step together, far beyond ε. */
  readonly stepsTogether: boolean;
  /** Mean time between two faults of each kind; `Infinity` for none. */
  readonly every: {
    readonly crashMs: number;
    readonly pauseMs: number;
    readonly silenceMs: number;
    readonly forgetMs: number;
    readonly clockMs: number;
  };
  readonly mistake: GridMistake | undefined;
  /** The asserted invariants: all, unless a mistake must be detected by one alone. */
  readonly asserted: readonly Invariant[];
}

export interface GridTrial {
  readonly mistake?: GridMistake;
  readonly asserted?: readonly Invariant[];
  /** Overrides of the drawn plan. */
  readonly plan?: Partial<GridPlan> | undefined;
}

/** Swarm style: each feature is off in about half of the runs (7.1). */
export function gridPlan(
  seed: number,
  { mistake, asserted = gridInvariants, plan }: GridTrial = {},
): GridPlan {
  const random = new SimRandom(seed);
  const stores = random.chance(0.8) ? 3 : 5;
  const ttlMaxMs = random.magnitude(400, 2_000);
  const wildRates = random.chance(0.5);
  const some = (meanMs: number) => (random.chance(0.5) ? random.between(0.5, 2) * meanMs : Infinity);
  const settings = fleaseSettings({
    members: Array.from({ length: stores }, (_, index) => `store-${index}`),
    cellSize: stores,
    maxClockSkewMs: random.magnitude(4, ttlMaxMs / 8),
    ttlMaxMs,
    rpcTimeoutMs: random.magnitude(10, ttlMaxMs / 6),
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
    wildRates,
    stepsTogether: random.chance(0.3),
    every: {
      crashMs: some(4 * ttlMaxMs),
      pauseMs: some(4 * ttlMaxMs),
      silenceMs: some(4 * ttlMaxMs),
      // A farm's waits are measured on steady clocks, so those must be within ρ.
      forgetMs: wildRates ? Infinity : some(6 * ttlMaxMs),
      clockMs: some(ttlMaxMs / 2),
    },
    timersLateMs: random.chance(0.5) ? 0 : random.magnitude(0.1, ttlMaxMs / 10),
    mistake,
    asserted,
    ...plan,
  };
}
