import type { SimRandom } from "../../kit/random.js";
import type { Aftermath } from "../checkers/aftermath.js";
import type { Lines } from "../checkers/lines.js";
import type { CoreForm } from "../world/plan.js";
import { type CoreWorld, drawRate } from "../world/world.js";
import type { Claims } from "./claims.js";

/** The name used for each form of lease. */
export const nameOf: Readonly<Record<Exclude<CoreForm, "several">, string>> = {
  exclusive: "e",
  shared: "s/~rw",
  counted: "c",
  fair: "f",
};

/** The names that are acquired together. */
export const several = ["a1", "a2", "a3"];

const leaseIdBase = 1n << 60n;

/** After the last fault a leader is found, and knows all leases, within this time. */
const settledMs = 15_000;

/** The plan of processes with leases in one run. */
export interface HoldersPlan {
  readonly forms: readonly CoreForm[];
  readonly processes: number;
  readonly programs: number;
  readonly ttlMs: number;
  /** Mean times, ms. */
  readonly thinkMs: number;
  readonly crashEveryMs: number;
  readonly pauseEveryMs: number;
  readonly cutEveryMs: number;
  readonly stepEveryMs: number;
  /** Rates of their steady clocks. */
  readonly rates: readonly number[];
}

export function drawHolders(
  forms: readonly CoreForm[],
  random: SimRandom,
  clockRateError: number,
): HoldersPlan {
  const often = (meanMs: number) => (random.chance(0.25) ? Infinity : meanMs * random.between(0.5, 2));
  const processes = random.pick([2, 3, 3, 4]);
  return {
    forms,
    processes,
    programs: 2,
    ttlMs: 1_000 * random.pick([2, 3, 4]),
    thinkMs: random.magnitude(50, 1_500),
    crashEveryMs: often(6_000),
    pauseEveryMs: Math.min(often(6_000), 10_000),
    cutEveryMs: often(6_000),
    stepEveryMs: often(20_000),
    rates: Array.from({ length: processes }, () => drawRate(random, clockRateError)),
  };
}

/** The shared state of a run's programs. */
export class HoldersStage {
  readonly world: CoreWorld;
  readonly plan: HoldersPlan;
  readonly random: SimRandom;
  readonly claims: Claims;
  readonly lines: Lines;
  readonly aftermath: Aftermath;
  /** Programs served since the last fault, as text. */
  readonly served = new Set<string>();
  /** Callers in the queue since the last fault, and their arrival times. */
  readonly inLine = new Map<object, number>();
  #leaseIds = 0n;

  constructor(
    world: CoreWorld,
    plan: HoldersPlan,
    random: SimRandom,
    judges: { readonly claims: Claims; readonly lines: Lines; readonly aftermath: Aftermath },
  ) {
    this.world = world;
    this.plan = plan;
    this.random = random;
    ({ claims: this.claims, lines: this.lines, aftermath: this.aftermath } = judges);
  }

  get isCalm(): boolean {
    return this.world.nowMs > this.world.plan.stableFromMs;
  }

  /** Unique here, and not drawn by a server. */
  drawLeaseId(): bigint {
    this.#leaseIds += 1n;
    return leaseIdBase + this.#leaseIds;
  }

  /** A leader exists, and stays. */
  get settledFromMs(): number {
    return this.world.plan.stableFromMs + settledMs;
  }

  /** The number of leases that each program must have had at the end. */
  get turns(): readonly (CoreForm | "writer")[] {
    return this.plan.forms.map((form) => (form === "shared" ? "writer" : form));
  }

  /** A writer is waiting, or will be. */
  get writersAreLeft(): boolean {
    const { forms, processes, programs } = this.plan;
    const writers = forms.includes("shared") ? processes * (programs - 1) : 0;
    return [...this.served].filter((who) => who.endsWith(" writer")).length < writers;
  }

  /** Programs that were not served, as text. */
  get missing(): readonly string[] {
    const { processes, programs } = this.plan;
    const missing: string[] = [];
    for (let process = 0; process < processes; process += 1)
      for (let program = 0; program < programs; program += 1)
        for (const turn of this.turns) {
          const who = `${process}/${program} ${turn}`;
          const reads = turn === "writer" && program === 0;
          if (!reads && !this.served.has(who)) missing.push(who);
        }
    return missing;
  }

  /** Checks that all programs were served. */
  check(): void {
    const { missing } = this;
    if (missing.length > 0) this.world.report("served", `never had a turn: ${missing.join()}`);
  }
}
