import { Deadlines } from "leasehold/inner/common/deadlines.js";
import type { DeadlineItem } from "leasehold/inner/common/deadlines.js";
import type { Timer, Timers } from "leasehold/inner/common/ports.js";
import type { SimClock } from "./clocks.js";
import { EventCode, Task } from "./events.js";

interface SteadyTimer extends DeadlineItem, Timer {
  readonly run: () => void;
}

/** The queue of a world. */
export interface Queue {
  readonly nowMs: number;
  scheduleAt(event: Task, dueMs: number): void;
  cancel(event: Task): void;
}

/** A process as its timers see it. */
export interface TimedProcess {
  readonly clock: SimClock;
  /** Runs due timers as an event of the process. A paused one runs them when it resumes. */
  turn(wake: Task, body: () => void): void;
  /** The delay of a timer, ms. */
  drawLateMs(): number;
}

/**
 * The timers of one process. They go by its steady clock: they are late when it runs slowly, and never fire
 * while it stands still. Each timer that falls due is an event of its own, and code that awaits it continues
 * before the next.
 */
export class SteadyTimers implements Timers {
  readonly #queue: Queue;
  readonly #owner: TimedProcess;
  readonly #deadlines = new Deadlines<SteadyTimer>();
  readonly #wake: Task;
  #ended = false;

  constructor(queue: Queue, owner: TimedProcess) {
    this.#queue = queue;
    this.#owner = owner;
    this.#wake = new Task(EventCode.timer, () => owner.turn(this.#wake, () => this.#fire()));
  }

  after(delayMs: number, run: () => void): Timer {
    const timer: SteadyTimer = {
      heapIndex: -1,
      run,
      cancel: () => {
        if (this.#deadlines.cancel(timer)) this.rearm();
      },
    };
    const { clock } = this.#owner;
    const dueMono = clock.monoAt(this.#queue.nowMs) + Math.max(0, delayMs);
    this.#deadlines.schedule(timer, dueMono + this.#owner.drawLateMs());
    this.rearm();
    return timer;
  }

  /** Sets the next wake-up, by the steady clock as it runs now. */
  rearm(): void {
    if (this.#ended) return;
    const dueMs = this.#owner.clock.timeOfMono(this.#deadlines.nextDueMs());
    if (dueMs === Infinity) this.#queue.cancel(this.#wake);
    else this.#queue.scheduleAt(this.#wake, Math.max(this.#queue.nowMs, dueMs));
  }

  /** The process has died. */
  end(): void {
    this.#ended = true;
    this.#queue.cancel(this.#wake);
  }

  #fire(): void {
    this.#deadlines.popDue(this.#owner.clock.monoAt(this.#queue.nowMs))?.run();
    this.rearm();
  }
}
