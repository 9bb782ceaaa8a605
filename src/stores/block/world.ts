import { setTimeout as delay } from "node:timers/promises";
import { type BothClocks, readBothClocks } from "../../common/both-clocks.js";
import type { Clock, Random } from "../../common/ports.js";

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

/**
 * By the clock that went further: the steady one stands still in a suspended machine, and the system's can be
 * set.
 */
export function elapsedSince(moment: BothClocks, { clock }: BlockWorld): number {
  const now = readBothClocks(clock);
  return Math.max(now.monotonicMs - moment.monotonicMs, now.wallMs - moment.wallMs);
}
