import type { SimRandom } from "../../kit/random.js";
import type { Aftermath } from "../checkers/aftermath.js";
import type { Lines } from "../checkers/lines.js";
import type { CoreForm } from "../world/plan.js";
import { type CoreWorld, drawRate } from "../world/world.js";
import type { Claims } from "./claims.js";

/** The name that is taken in each form. */
export const nameOf: Readonly<Record<Exclude<CoreForm, "several">, string>> = {
  exclusive: "e",
  shared: "s/~rw",
  counted: "c",
  fair: "f",
};

/** Of those that take several at once. */
export const several = ["a1", "a2", "a3"];

const leaseIdBase = 1n << 60n;

/** When nothing goes wrong any more, a leader is found and knows all leases in that time. */
const settledMs = 15_000;

/** What processes with leases are like, in one run. */
export interface HoldersPlan {
  readonly forms: readonly CoreForm[];
  readonly processes: number;
  readonly programs: number;
  readonly ttlMs: number;
  /** Means, ms. */
  readonly thinkMs: number;
  readonly crashEveryMs: number;
  readonly pauseEveryMs: number;
  readonly cutEveryMs: number;
  readonly stepEveryMs: number;
  /** Of their steady clocks. */
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

/** What the programs of a run share. */
export class HoldersStage {
  readonly world: CoreWorld;
  readonly plan: HoldersPlan;
  readonly random: SimRandom;
  readonly claims: Claims;
  readonly lines: Lines;
  readonly aftermath: Aftermath;
  /** Who has had what since all is well, as text. */
  readonly served = new Set<string>();
  /** Callers in line since all is well, and when they came. */
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

  /** That no server draws, and nobody else here. */
  drawLeaseId(): bigint {
    this.#leaseIds += 1n;
    return leaseIdBase + this.#leaseIds;
  }

  /** A leader is there, and stays. */
  get settledFromMs(): number {
    return this.world.plan.stableFromMs + settledMs;
  }

  /** What each program has to have had in the end. */
  get turns(): readonly (CoreForm | "writer")[] {
    return this.plan.forms.map((form) => (form === "shared" ? "writer" : form));
  }

  /** Somebody who wants to write waits still, or will. */
  get writersAreLeft(): boolean {
    const { forms, processes, programs } = this.plan;
    const writers = forms.includes("shared") ? processes * (programs - 1) : 0;
    return [...this.served].filter((who) => who.endsWith(" writer")).length < writers;
  }

  /** Whose turn has not come, as text. */
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

  /** All that is to be had was had by all. */
  check(): void {
    const { missing } = this;
    if (missing.length > 0) this.world.report("served", `never had a turn: ${missing.join()}`);
  }
}
