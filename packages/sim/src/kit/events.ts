import type { DeadlineItem } from "leasehold/inner/common/deadlines.js";

/** An event in the world's queue. Events run in the order of (time, scheduling). */
export abstract class SimEvent implements DeadlineItem {
  /** Written by the world, when the event is scheduled. */
  dueMs = 0;
  heapIndex = -1;
  /** The kind of the event, for the trace hash. */
  abstract readonly code: number;
  abstract run(): void;
}

/** Work at a given time; it can be scheduled repeatedly. */
export class Task extends SimEvent {
  readonly code: number;
  readonly #body: () => void;

  constructor(code: number, body: () => void) {
    super();
    this.code = code;
    this.#body = body;
  }

  run(): void {
    this.#body();
  }
}

/** Codes of events in the trace hash. */
export const EventCode = {
  chaos: 1,
  wake: 2,
  maintain: 3,
  agent: 4,
  start: 5,
  packet: 6,
  timer: 7,
  noticed: 8,
} as const;
