import { StateHash } from "leasehold/inner/flease/protocol/state-hash.js";
import { Deadlines } from "leasehold/inner/common/deadlines.js";
import type { Counters } from "./counters.js";
import { EventCode, type SimEvent, Task } from "./events.js";
import type { SimRandom } from "./random.js";
import type { Report, Violation } from "./violation.js";

/** Maximum number of events of a run. A run that exceeds it is stuck in a loop. */
const eventsMax = 4_000_000;

export interface SimWorldOptions<Invariant extends string, Counts extends Counters> {
  readonly random: SimRandom;
  /** All zero. */
  readonly counters: Counts;
  /** Gets each thing that happens as a line of text. */
  readonly story?: ((line: string) => void) | undefined;
  /** The run ends at the first violation of an invariant for which this is true. Default: every one. */
  readonly asserted?: ((invariant: Invariant) => boolean) | undefined;
}

/**
 * The common part of all worlds: true time, the events in order, one random generator, and the first
 * violation. The order of events determines the run, and the hash covers all of them: two runs of one seed
 * must agree.
 */
export class SimWorld<Invariant extends string, Counts extends Counters> {
  readonly random: SimRandom;
  readonly counters: Counts;
  readonly hash = new StateHash();
  readonly story: ((line: string) => void) | undefined;
  /** True time, ms since the run began. */
  nowMs = 0;
  violation: Violation<Invariant> | undefined;
  readonly #queue = new Deadlines<SimEvent>();
  readonly #asserted: (invariant: Invariant) => boolean;

  constructor({ random, counters, story, asserted }: SimWorldOptions<Invariant, Counts>) {
    this.random = random;
    this.counters = counters;
    this.counters.runs = 1;
    this.story = story && ((line) => story(`${this.nowMs.toFixed(3)} ${line}`));
    this.#asserted = asserted ?? (() => true);
  }

  /** Schedules work at that time, or now if it has passed; at `Infinity` never. */
  at(timeMs: number, body: () => void, code: number = EventCode.chaos): void {
    if (timeMs !== Infinity) this.scheduleAt(new Task(code, body), Math.max(timeMs, this.nowMs));
  }

  after(delayMs: number, body: () => void, code?: number): void {
    this.at(this.nowMs + delayMs, body, code);
  }

  schedule(event: SimEvent, delayMs: number): void {
    this.#put(event, this.nowMs + delayMs);
  }

  scheduleAt(event: SimEvent, dueMs: number): void {
    if (event.heapIndex !== -1 && event.dueMs === dueMs) return;
    this.#put(event, dueMs);
  }

  #put(event: SimEvent, dueMs: number): void {
    event.dueMs = dueMs;
    this.#queue.schedule(event, dueMs);
  }

  cancel(event: SimEvent): void {
    this.#queue.cancel(event);
  }

  get nextDueMs(): number {
    return this.#queue.nextDueMs();
  }

  /**
   * Takes the next event from the queue, and advances time to it. Undefined after `endMs`, and after a
   * violation.
   */
  next(endMs: number): SimEvent | undefined {
    if (this.violation !== undefined) return undefined;
    const event = this.#queue.popDue(endMs);
    if (event === undefined) return undefined;
    if (++this.counters.events > eventsMax) throw new Error("the run is wild: it has too many events");
    this.nowMs = Math.max(this.nowMs, event.dueMs);
    this.hash.number(this.nowMs).number(event.code);
    return event;
  }

  readonly report: Report<Invariant> = (invariant, text) => {
    if (this.violation !== undefined || !this.#asserted(invariant)) return;
    this.story?.(`VIOLATION ${invariant}: ${text}`);
    this.violation = { invariant, atMs: this.nowMs, event: this.counters.events, text };
  };
}
