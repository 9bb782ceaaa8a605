import { setTimeout as delay } from "node:timers/promises";
import { type BothClocks, elapsedMs, readBothClocks } from "../../common/both-clocks.js";
import type { Clock, Random } from "../../common/ports.js";

/** The environment of a slot's owner. */
export interface BlockWorld {
  readonly clock: Clock;
  readonly random: Random;
  /** Rejects when the signal aborts. `keepsAlive`: the process stays alive during the wait. */
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
