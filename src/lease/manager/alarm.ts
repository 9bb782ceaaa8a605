import { type DeadlineItem, Deadlines } from "../../common/deadlines.js";
import type { Timer, World } from "../../common/ports.js";

/** What wants to be woken. */
export interface Sleeper extends DeadlineItem {
  wake(): void;
}

/**
 * Sleepers that are woken in one turn of the event loop: some milliseconds. The end of a lease costs more
 * than its renewal. When very many ended in one turn, which took seconds, the others ended in that time.
 */
export const wakesPerTurn = 1_024;

/**
 * Wakes the leases of a participant by one timer for all of them: there may be hundreds of thousands, and a
 * timer for each would take more memory than what is known of a lease.
 */
export class Alarm {
  readonly #world: World;
  readonly #sleepers = new Deadlines<Sleeper>();
  #timer: Timer | undefined;
  /** When the timer fires, on the steady clock. */
  #armedMs = Infinity;

  constructor(world: World) {
    this.#world = world;
  }

  /**
   * Wakes it then, or as soon as it was to be woken before. One that is woken too early finds nothing to do
   * and asks again: cheaper than to move it each time.
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
