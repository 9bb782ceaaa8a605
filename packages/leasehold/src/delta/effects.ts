import type { BothClocks } from "../common/both-clocks.js";
import type { StoreAnswer, StoreRequest } from "./store.js";

/**
 * The algorithms on shared storage are generators. They read line by line like the figures of the paper,
 * yield effects, and are resumed with the results and a clock reading. `driver.ts` resumes them; its world
 * provides time and storage.
 */
export type Protocol<Result> = Generator<Effect, Result, Resumption>;

export type Effect = Ask | Delay;

/** Sends requests to the stores of a farm at the same time. */
export interface Ask {
  readonly kind: "ask";
  /** By store index; `undefined` for a store that is not asked. */
  readonly requests: readonly (StoreRequest | undefined)[];
  /**
   * Called with each further answer; true ends the wait. Slow stores cost nothing while enough others are
   * fast.
   */
  readonly enough: (answers: readonly (StoreAnswer | undefined)[]) => boolean;
  /** The timeout of the wait. Requests in flight then continue, and may still take effect. */
  readonly timeoutMs: number;
  /**
   * Called with each answer that arrives after the wait has ended, as long as the driver tracks the
   * operation. Then `enough` of the algorithm's present wait is called, too.
   */
  readonly late?: (store: number, answer: StoreAnswer, now: BothClocks) => void;
}

export interface Delay {
  readonly kind: "delay";
  /** 0 takes no time, and only reads the clocks. */
  readonly delayMs: number;
}

export interface Resumption {
  readonly now: BothClocks;
  /**
   * The caller has given up: the algorithm should withdraw any write that it may have left, and end. Delays
   * and reads end at once. A write is awaited, because it may have to be withdrawn.
   */
  readonly cancelled: boolean;
  /** By store index; `undefined` for a store that has not answered. Empty after a delay. */
  readonly answers: readonly (StoreAnswer | undefined)[];
}

/** For an algorithm that needs the time before it asks. */
export const lookAtClocks: Delay = { kind: "delay", delayMs: 0 };
