import { setTimeout as delay } from "node:timers/promises";
import type { Clock, Random } from "../../lease/ports.js";

/** What the owner of a slot needs of the world. */
export interface BlockWorld {
  readonly clock: Clock;
  readonly random: Random;
  /** Rejects when the signal says so. `keepsAlive`: the process does not end while it waits. */
  sleep(ms: number, signal: AbortSignal, keepsAlive: boolean): Promise<void>;
}

export const realBlockWorld: BlockWorld = {
  clock: { monotonicMs: () => performance.now(), wallMs: () => Date.now() },
  random: { next: () => Math.random() },
  sleep: (ms, signal, keepsAlive) => delay(ms, undefined, { signal, ref: keepsAlive }),
};

/** A moment by both clocks: the steady one stands still in a suspended machine, and the system's can be set. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function momentOf({ clock }: BlockWorld): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/** By the clock that went further. */
export function elapsedSince(moment: Moment, { clock }: BlockWorld): number {
  return Math.max(clock.monotonicMs() - moment.monotonicMs, clock.wallMs() - moment.wallMs);
}
