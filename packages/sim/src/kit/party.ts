import { type BothClocks, readBothClocks } from "leasehold/inner/common/both-clocks.js";
import type { Clock, Random, Timers, World } from "leasehold/inner/common/ports.js";
import type { SimClock } from "./clocks.js";
import { EventCode, type SimEvent, Task } from "./events.js";

/** True time, as a process sees it. */
export interface TrueTime {
  readonly nowMs: number;
  readonly random: Random;
  at(timeMs: number, body: () => void, code?: number): void;
  scheduleAt(event: SimEvent, timeMs: number): void;
  cancel(event: SimEvent): void;
  /** A process continues: its promises have to settle before time passes. */
  stir(): void;
}

/**
 * A process with clocks of its own, which may be stopped for a while, or crash. To the drivers in it this is the world, as the real one is
 * in production.
 */
export class SimParty implements World {
  /** Name and incarnation: the writer of its records. */
  readonly writer: string;
  readonly index: number;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** Its programs go on. */
  isAlive = true;
  /** The process has ended. A process that exits cleanly first releases what its drivers hold. */
  isGone = false;
  pausedUntilMs = 0;
  readonly #time: TrueTime;

  constructor(time: TrueTime, index: number, writer: string, clock: SimClock) {
    this.#time = time;
    this.index = index;
    this.writer = writer;
    this.random = time.random;
    this.clock = {
      monotonicMs: () => clock.monoAt(time.nowMs),
      wallMs: () => clock.wallAt(time.nowMs),
    };
    this.timers = {
      after: (delayMs, run) => {
        let isCancelled = false;
        time.stir();
        const dueMonoMs = this.clock.monotonicMs() + Math.max(0, delayMs);
        const wait = () => {
          const dueMs = clock.timeOfMono(dueMonoMs);
          if (!this.isGone && dueMs < Infinity) time.scheduleAt(task, dueMs);
        };
        const task = new Task(EventCode.timer, () =>
          this.awake(() => {
            if (isCancelled) return;
            // The steady clock has stood still meanwhile.
            if (this.clock.monotonicMs() < dueMonoMs) wait();
            else run();
          }),
        );
        wait();
        return {
          cancel: () => {
            isCancelled = true;
            time.cancel(task);
          },
        };
      },
    };
  }

  /** Its present clock readings. */
  look(): BothClocks {
    return readBothClocks(this.clock);
  }

  /** Runs something when the process is not stopped, and never after its end. */
  awake(body: () => void): void {
    if (this.isGone) return;
    const { pausedUntilMs } = this;
    if (this.#time.nowMs < pausedUntilMs) {
      this.#time.at(pausedUntilMs, () => this.awake(body), EventCode.timer);
      return;
    }
    this.#time.stir();
    body();
  }

  async sleep(delayMs: number): Promise<void> {
    await this.alive(
      new Promise<void>((resolve) => {
        this.timers.after(delayMs, resolve);
      }),
    );
  }

  /** A promise for a program, which never settles once its process has ended. */
  async alive<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } finally {
      if (!this.isAlive) await new Promise<never>(() => undefined);
    }
  }
}
