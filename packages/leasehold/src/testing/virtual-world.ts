import { type DeadlineItem, Deadlines } from "../common/deadlines.js";
import { parseDuration } from "../lease/duration.js";
import type { Clock, Random, Timer, Timers, World } from "../common/ports.js";
import type { Duration } from "../lease/types.js";
import { Xorshift } from "../common/xorshift.js";

/**
 * Captured when this file is loaded, so that a test that fakes the platform's timers does not stop virtual
 * time.
 */
const setImmediate = globalThis.setImmediate;

/**
 * The number of turns of the event loop in {@link VirtualWorld.settle}, so that work that itself uses
 * `setImmediate` also continues.
 */
const settleTurns = 3;

/** More timers than this at one moment mean a loop that would never let time advance. */
const timersAtOneMomentMax = 100_000;

/** The system clock of a new world: 2026-01-01 UTC. */
const wallStartMs = Date.UTC(2026, 0, 1);

interface VirtualTimer extends DeadlineItem, Timer {
  run: () => void;
}

/**
 * A world in which a test advances time: clocks, timers and random numbers for a `LeaseManager` or a
 * provider. Runs are repeatable.
 *
 * @example
 * ```ts
 * const world = new VirtualWorld();
 * world.timers.after(1_000, () => console.log("a second has passed"));
 * await world.advance("1s");
 * ```
 */
export class VirtualWorld implements World {
  readonly clock: Clock = { monotonicMs: () => this.#monotonicMs, wallMs: () => this.#wallMs };
  readonly timers: Timers = { after: (delayMs, run) => this.#after(delayMs, run) };
  readonly random: Random;

  readonly #deadlines = new Deadlines<VirtualTimer>();
  #monotonicMs = 0;
  #wallMs = wallStartMs;
  /** Concurrent calls of `advance` run one after the other. */
  #advancing: Promise<void> = Promise.resolve();

  constructor(options: { seed?: number } = {}) {
    this.random = new Xorshift(options.seed ?? 1);
  }

  /** The number of timers that have neither run nor been cancelled: 0 if none leaks. */
  get pendingTimers(): number {
    return this.#deadlines.size;
  }

  /**
   * Advances time: runs the timers that fall due, in order and each at its time, and lets promises that wait
   * for one continue before the next. `advance(0)` runs the timers that are already due.
   */
  async advance(duration: Duration): Promise<void> {
    const targetMs = this.#monotonicMs + parseDuration(duration);
    const advanced = this.#advancing.then(() => this.#advanceTo(targetMs));
    // Only this caller gets a timer's error.
    this.#advancing = advanced.catch(() => undefined);
    await advanced;
  }

  /**
   * Blocks the event loop, or stops the process, for this long: both clocks advance, but no timer runs until
   * the next `advance`.
   */
  block(duration: Duration): void {
    this.#moveTo(this.#monotonicMs + parseDuration(duration));
  }

  /** Suspends the machine for this long: the system clock advances, but the steady clock stops. */
  suspend(duration: Duration): void {
    this.stepWall(parseDuration(duration));
  }

  /** Sets the system clock forward or (negative) back, in milliseconds. */
  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  /** Lets promises continue without advancing time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < settleTurns; turn += 1) {
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    }
  }

  #after(delayMs: number, run: () => void): Timer {
    const timer: VirtualTimer = {
      heapIndex: -1,
      run,
      cancel: () => this.#deadlines.cancel(timer),
    };
    this.#deadlines.schedule(timer, this.#monotonicMs + Math.max(0, delayMs));
    return timer;
  }

  async #advanceTo(targetMs: number): Promise<void> {
    await this.settle();
    let timersAtThisMoment = 0;
    for (;;) {
      const dueMs = this.#deadlines.nextDueMs();
      if (dueMs > Math.max(targetMs, this.#monotonicMs)) break;
      timersAtThisMoment = dueMs > this.#monotonicMs ? 0 : timersAtThisMoment + 1;
      if (timersAtThisMoment > timersAtOneMomentMax) {
        throw new Error(`timers that set timers without delay: time cannot get past ${this.#monotonicMs} ms`);
      }
      this.#moveTo(dueMs);
      this.#deadlines.popDue(dueMs)?.run();
      await this.settle();
    }
    this.#moveTo(targetMs);
  }

  /** Time never goes backwards; timers that fell due while the event loop was blocked run now. */
  #moveTo(monotonicMs: number): void {
    if (monotonicMs <= this.#monotonicMs) return;
    this.#wallMs += monotonicMs - this.#monotonicMs;
    this.#monotonicMs = monotonicMs;
  }
}
