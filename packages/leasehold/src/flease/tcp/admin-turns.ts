import type { Timer, World } from "../../common/ports.js";

/**
 * How long one turn of the event loop works on what was asked beside the protocol, ms. A step more may be
 * added.
 */
const turnMs = 0.5;

/**
 * Then it rests for so many times as long as it has worked. With the encoding of the answers, which is about
 * as much again, that leaves two thirds of the time to leases, however much is asked.
 */
const restFactor = 4;

/**
 * A rest is no longer than this, ms: a turn that took so long has waited for the processor, and did not work.
 */
const restMsMax = 20;

/**
 * Gives work that may wait turns of the event loop of its own, each of them short. Between two of them
 * everything that has arrived meanwhile is handled.
 */
export class AdminTurns {
  readonly #world: World;
  readonly #work: (goOn: () => boolean) => boolean;
  #turn: NodeJS.Immediate | undefined;
  #rest: Timer | undefined;
  #restsUntilMs = -Infinity;

  /**
   * `work` does at least one step, goes on as long as it is told to, and returns whether there is more to do.
   */
  constructor(world: World, work: (goOn: () => boolean) => boolean) {
    this.#world = world;
    this.#work = work;
  }

  /** There is something to do. Idempotent. */
  wanted(): void {
    if (this.#turn !== undefined || this.#rest !== undefined) return;
    const restMs = this.#restsUntilMs - this.#world.clock.monotonicMs();
    if (restMs > 0) this.#rest = this.#world.timers.after(restMs, this.#take);
    else this.#turn = setImmediate(this.#take);
  }

  stop(): void {
    clearImmediate(this.#turn);
    this.#rest?.cancel();
    this.#turn = this.#rest = undefined;
  }

  readonly #take = (): void => {
    this.#turn = this.#rest = undefined;
    const { clock } = this.#world;
    const beganMs = clock.monotonicMs();
    const hasMore = this.#work(() => clock.monotonicMs() - beganMs < turnMs);
    const endedMs = clock.monotonicMs();
    this.#restsUntilMs = endedMs + Math.min(restMsMax, restFactor * (endedMs - beganMs));
    if (hasMore) this.wanted();
  };
}
