import type { BothClocks } from "../common/both-clocks.js";
import type { StoreAnswer, StoreRequest } from "./store.js";

/**
 * The algorithms on shared storage are generators: they read line by line like the figures of the paper, yield what
 * is to be done, and are resumed with what came of it and a reading of the clocks. `driver.ts` resumes them; its world
 * decides what time and storage are.
 */
export type Protocol<Result> = Generator<Effect, Result, Resumption>;

export type Effect = Ask | Delay;

/** Asks the stores of a farm at the same time. */
export interface Ask {
  readonly kind: "ask";
  /** By the index of the store; `undefined` for one that is not asked. */
  readonly requests: readonly (StoreRequest | undefined)[];
  /** Called with each further answer: true ends the wait. Stores that are slow cost nothing as long as enough are not. */
  readonly enough: (answers: readonly (StoreAnswer | undefined)[]) => boolean;
  /** Ends the wait, whatever has come. What is under way then goes on, and may still take effect. */
  readonly timeoutMs: number;
  /**
   * Told of each answer that comes after the wait has ended, as long as the driver still follows the operation. Then `enough` of what
   * the same algorithm waits for now is called, too.
   */
  readonly late?: (store: number, answer: StoreAnswer, now: BothClocks) => void;
}

export interface Delay {
  readonly kind: "delay";
  /** 0 is a look at the clocks, and takes no time. */
  readonly delayMs: number;
}

export interface Resumption {
  readonly now: BothClocks;
  /**
   * The caller wants no more: withdraw what may have been left behind, and end. It ends delays and reads at once; a write is
   * waited for, as it would have to be withdrawn.
   */
  readonly cancelled: boolean;
  /** By the index of the store; `undefined` for one that has not answered. Empty after a delay. */
  readonly answers: readonly (StoreAnswer | undefined)[];
}

/** For an algorithm that has to know the time before it asks. */
export const lookAtClocks: Delay = { kind: "delay", delayMs: 0 };
