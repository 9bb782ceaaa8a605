import { type DeadlineItem, Deadlines } from "../../common/deadlines.js";
import type { Timer, World } from "../../common/ports.js";

/** An object that the alarm wakes. */
export interface Sleeper extends DeadlineItem {
  wake(): void;
}

/**
 * Sleepers woken per turn of the event loop, which takes some milliseconds. Ending a lease costs more than
 * renewing one. If very many ended in one turn, that would take seconds, during which other leases would
 * expire.
 */
export const wakesPerTurn = 1_024;

/**
 * Wakes the leases of a participant with a single timer: there may be hundreds of thousands, and a timer for
 * each would take more memory than the lease itself.
 */
export class Alarm {
  readonly #world: World;
  readonly #sleepers = new Deadlines<Sleeper>();
  #timer: Timer | undefined;
  /** The time at which the timer fires, on the steady clock. */
  #armedMs = Infinity;

  constructor(world: World) {
    this.#world = world;
  }

  /**
   * Wakes the sleeper at `dueMs`, or earlier if an earlier time was set. A sleeper that is woken too early
   * sets the alarm again, which is cheaper than moving its entry each time.
   */
  set(sleeper: Sleeper, dueMs: number, nowMs: number): void {
    if (sleeper.heapIndex !== -1 && this.#sleepers.dueMs(sleeper) <= dueMs) return;
    this.#sleepers.schedule(sleeper, dueMs);
    if (dueMs < this.#armedMs) this.#arm(nowMs);
  }

  cancel(sleeper: Sleeper): void {
    this.#sleepers.cancel(sleeper);
    if (this.#sleepers.size > 0 || this.#timer === undefined) return;
    this.#timer.cancel();
    this.#timer = undefined;
    this.#armedMs = Infinity;
  }

  #arm(nowMs: number): void {
    this.#timer?.cancel();
    this.#armedMs = this.#sleepers.nextDueMs();
    this.#timer = this.#world.timers.after(Math.max(0, this.#armedMs - nowMs), this.#ring);
  }

  readonly #ring = (): void => {
    this.#timer = undefined;
    this.#armedMs = Infinity;
    const { clock } = this.#world;
    const nowMs = clock.monotonicMs();
    try {
      for (let woken = 0; woken < wakesPerTurn; woken += 1) {
        const each = this.#sleepers.popDue(nowMs);
        if (each === undefined) break;
        each.wake();
      }
    } finally {
      const { size } = this.#sleepers;
      if (size > 0 && this.#sleepers.nextDueMs() < this.#armedMs) this.#arm(clock.monotonicMs());
    }
  };
}
