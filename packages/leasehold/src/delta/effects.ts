import type { BothClocks } from "../common/both-clocks.js";
import type { StoreAnswer, StoreRequest } from "./store.js";

/**
 * The algorithms on shared storage are generators: they read line by line like the figures of the paper,
 * yield effects, and are resumed with the results and a reading of the clocks. `driver.ts` resumes them; its
 * world provides time and storage.
 */
export type Protocol<Result> = Generator<Effect, Result, Resumption>;

export type Effect = Ask | Delay;

/** Sends requests to the stores of a farm at the same time. */
export interface Ask {
  readonly kind: "ask";
  /** By the index of the store; `undefined` for one that is not asked. */
  readonly requests: readonly (StoreRequest | undefined)[];
  /**
   * Called with each further answer: true ends the wait. Slow stores cost nothing while enough others are
   * fast.
   */
  readonly enough: (answers: readonly (StoreAnswer | undefined)[]) => boolean;
  /** The timeout of the wait. Requests in flight then continue, and may still take effect. */
  readonly timeoutMs: number;
  /**
   * Called with each answer that arrives after the wait has ended, as long as the driver follows the
   * operation. Then `enough` of the algorithm's present wait is called, too.
   */
  readonly late?: (store: number, answer: StoreAnswer, now: BothClocks) => void;
}

export interface Delay {
  readonly kind: "delay";
  /** 0 reads the clocks, and takes no time. */
  readonly delayMs: number;
}

export interface Resumption {
  readonly now: BothClocks;
  /**
   * The caller has given up: the algorithm should withdraw what it may have left behind, and end. Delays and
   * reads end at once; a write is awaited, as it would have to be withdrawn.
   */
  readonly cancelled: boolean;
  /** By the index of the store; `undefined` for one that has not answered. Empty after a delay. */
  readonly answers: readonly (StoreAnswer | undefined)[];
}

/** For an algorithm that needs the time before it asks. */
export const lookAtClocks: Delay = { kind: "delay", delayMs: 0 };
