import type { SimRandom } from "../kit/random.js";
import type { StoragePlan } from "./stage/plan.js";
import type { SimStore } from "../kit/store.js";

/** The share of δ (the bound of a complete operation) that the stores may take. */
const boundPart = 0.97;

/** The latency of requests. */
export class Latency {
  readonly #plan: StoragePlan;
  readonly #random: SimRandom;
  readonly #boundMs: number;

  constructor(plan: StoragePlan, random: SimRandom) {
    this.#plan = plan;
    this.#random = random;
    // δ holds by every clock, even the fastest.
    this.#boundMs = (boundPart * plan.delayMs) / phasesOf(plan) / (1 + plan.clockDrift);
  }

  /** The true times at which a request that leaves now takes effect, and at which its answer arrives. */
  draw(store: SimStore, nowMs: number): { effectMs: number; answerMs: number } {
    const { slowRate, slowMaxMs, stableFromMs } = this.#plan;
    const random = this.#random;
    if (nowMs >= store.silentFromMs) return { effectMs: Infinity, answerMs: Infinity };
    const stable = nowMs >= stableFromMs;
    const totalMs = !stable && random.chance(slowRate) ? random.between(0, slowMaxMs) : this.#boundedMs();
    // Requests in flight when delays become bounded arrive soon afterwards.
    const latestMs = Math.max(nowMs, stableFromMs) + this.#boundMs;
    const leaveMs = Math.max(nowMs, store.stalledUntilMs);
    const answerMs = Math.min(leaveMs + totalMs, latestMs);
    const effectMs = leaveMs + (answerMs - leaveMs) * random.pick([0.01, 0.5, 0.99]);
    return { effectMs: Math.min(effectMs, answerMs), answerMs };
  }

  #boundedMs(): number {
    const sluggish = this.#random.chance(this.#plan.sluggishRate);
    return sluggish
      ? this.#random.between(0.9, 1) * this.#boundMs
      : this.#random.next() * 0.3 * this.#boundMs;
  }
}

/** The longest sequence of requests in one operation: δ bounds them together. */
function phasesOf({ ground, kinds, processes }: StoragePlan): number {
  // A replacement that comes too late is repeated, at most once for each of the others.
  if (kinds.includes("atomic")) return 2 + processes;
  return ground === "always-bounded" || ground === "register" ? 2 : 1;
}
