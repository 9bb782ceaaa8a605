import { setTimeout as delay } from "node:timers/promises";
import { type BothClocks, elapsedMs, readBothClocks } from "../../common/both-clocks.js";
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

export function elapsedSince(moment: BothClocks, { clock }: BlockWorld): number {
  return elapsedMs(moment, readBothClocks(clock));
}
