import { randomBytes } from "node:crypto";
// Imported, because the global of this name is a getter that takes as long as reading the clock.
import { performance } from "node:perf_hooks";
import { Deadlines } from "../common/deadlines.js";
import type { DeadlineItem } from "../common/deadlines.js";
import type { KeepAlive } from "../common/keep-alive.js";
import type { Clock, Random, Timer, Timers, World } from "../common/ports.js";
import { programHooks } from "./program-hooks.js";

/** If a timer fires later than this, the process is overloaded or was stopped. */
const lateMs = 20;

/** The maximum delay of `setTimeout`; a timer with a longer one would fire at once. */
const timeoutMsMax = 2 ** 31 - 1;

class PendingCall implements DeadlineItem, Timer {
  heapIndex = -1;
  readonly run: () => void;
  readonly #pending: Deadlines<PendingCall>;

  constructor(pending: Deadlines<PendingCall>, run: () => void) {
    this.#pending = pending;
    this.run = run;
  }

  cancel(): void {
    this.#pending.cancel(this);
  }
}

/**
 * All pending calls share a single `setTimeout`. It never keeps the process alive: `keepAlive` does while a
 * program waits, and so does a listening member. Cancelling a call leaves the timeout armed, and it may then
 * find nothing to do. That is cheaper than rearming it for each of the many timeouts that an answer cancels.
 */
class RealTimers implements Timers {
  readonly #clock: Clock;
  readonly #pending = new Deadlines<PendingCall>();
  #timeout: NodeJS.Timeout | undefined;
  readonly #run = (): void => this.#runDue();
  /** When the armed timeout fires, on the steady clock. */
  #armedMs = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  after(delayMs: number, run: () => void): Timer {
    const call = new PendingCall(this.#pending, run);
    const nowMs = this.#clock.monotonicMs();
    const dueMs = nowMs + Math.max(0, delayMs);
    this.#pending.schedule(call, dueMs);
    if (dueMs < this.#armedMs) this.#arm(nowMs);
    return call;
  }

  #arm(nowMs: number): void {
    clearTimeout(this.#timeout);
    const dueMs = this.#pending.nextDueMs();
    if (dueMs === Infinity) {
      this.#timeout = undefined;
      this.#armedMs = Infinity;
      return;
    }
    const delayMs = Math.min(Math.max(1, Math.ceil(dueMs - nowMs)), timeoutMsMax);
    this.#armedMs = nowMs + delayMs;
    this.#timeout = setTimeout(this.#wake, delayMs);
    this.#timeout.unref();
  }

  /**
   * When a timer is late, data that has arrived meanwhile goes first: the event loop reads it after its
   * timers and before its immediates. Otherwise a request whose answer has already arrived would time out,
   * and its repetition would add to the load.
   */
  readonly #wake = (): void => {
    if (this.#clock.monotonicMs() - this.#armedMs > lateMs) setImmediate(this.#run);
    else this.#runDue();
  };

  #runDue(): void {
    // Calls scheduled from here on, including by the calls below, wait for the next round.
    const nowMs = this.#clock.monotonicMs();
    try {
      for (let call = this.#pending.popDue(nowMs); call !== undefined; call = this.#pending.popDue(nowMs)) {
        call.run();
      }
    } finally {
      this.#arm(this.#clock.monotonicMs());
    }
  }
}

const threadMonotonicMs = () => performance.now();

/** An idle interval, shared by all worlds of a thread and referenced while work is in progress. */
class ProcessKeepAlive implements KeepAlive {
  #uses = 0;
  #interval: NodeJS.Timeout | undefined;

  ref(): void {
    this.#uses += 1;
    if (this.#uses > 1) return;
    this.#interval ??= setInterval(() => undefined, timeoutMsMax);
    this.#interval.ref();
  }

  unref(): void {
    this.#uses -= 1;
    if (this.#uses === 0) this.#interval?.unref();
  }
}

/** The instance of this thread. */
export const keepAlive: KeepAlive = new ProcessKeepAlive();

const random: Random = { next: () => Math.random() };

/**
 * The real world: this machine's clocks, its timers and V8's random numbers (which only spread retries).
 * `monotonicMs` replaces the source of the steady clock.
 */
export function realWorld(monotonicMs: () => number = threadMonotonicMs): World {
  const clock: Clock = { monotonicMs, wallMs: () => Date.now() };
  return { clock, timers: new RealTimers(clock), random, keepAlive, hooks: programHooks };
}

/**
 * 64 random bits as 16 hexadecimal digits, which distinguish two proposers with the same name, and two starts
 * of one process.
 */
export function incarnation(): string {
  return randomBytes(8).toString("hex");
}
