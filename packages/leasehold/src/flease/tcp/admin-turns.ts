import type { Timer, World } from "../../common/ports.js";

/** Time per turn of the event loop for calls outside the protocol, ms. One further step may exceed it. */
const turnMs = 0.5;

/**
 * Pause after each turn, as a multiple of the time worked. Encoding the answers costs about as much again, so
 * leases keep two thirds of the time under any load of calls.
 */
const restFactor = 4;

/** Maximum pause, ms: a turn that took longer was waiting for the processor. */
const restMsMax = 20;

/**
 * Runs low-priority work in short event loop turns of its own. Input that arrives between two turns is
 * handled first.
 */
export class AdminTurns {
  readonly #world: World;
  readonly #work: (goOn: () => boolean) => boolean;
  #turn: NodeJS.Immediate | undefined;
  #rest: Timer | undefined;
  #restsUntilMs = -Infinity;

  /** `work` does at least one step, continues while `goOn()` is true, and returns whether work is left. */
  constructor(world: World, work: (goOn: () => boolean) => boolean) {
    this.#world = world;
    this.#work = work;
  }

  /** Schedules the work. Idempotent. */
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
