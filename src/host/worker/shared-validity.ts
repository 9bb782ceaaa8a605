import type { LossReason } from "../../lease/errors.js";

/**
 * What two threads know together about how long a lease is valid. The thread that renews writes, the thread of the
 * program reads, and neither waits for the other: a busy program keeps its leases, and a look at one of them is right
 * whatever the other thread does.
 *
 * Times are whole microseconds, rounded to the safe side. `until` and `end` never go back in one tenure, so whoever
 * reads one of them old and one new believes in less than the lease is worth, never in more.
 */

/** In the order of their numbers in shared memory; the first stands for nothing that is known. */
const reasons: readonly (LossReason | undefined)[] = [
  undefined,
  "expired",
  "clock-fault",
  "max-hold",
  "closed",
  "released",
  "broken",
];

const US_PER_MS = 1_000;

const Grant = { until: 0, end: 1, over: 2, reason: 3, length: 4 } as const;
const Thread = { upperLead: 0, signOfLife: 1, length: 2 } as const;

function newCells(length: number): BigInt64Array<SharedArrayBuffer> {
  return new BigInt64Array(new SharedArrayBuffer(length * BigInt64Array.BYTES_PER_ELEMENT));
}

function down(ms: number): bigint {
  return BigInt(Math.floor(ms * US_PER_MS));
}

function up(ms: number): bigint {
  return BigInt(Math.ceil(ms * US_PER_MS));
}

function toMs(us: bigint): number {
  return Number(us) / US_PER_MS;
}

/**
 * The steady clock that all threads of a process read alike; `performance.now()` begins anew in each thread.
 */
export function sharedMonotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}

/** What the two threads of one client tell each other besides its leases. */
export class SharedThreads {
  readonly #cells: BigInt64Array<SharedArrayBuffer>;

  constructor(buffer?: SharedArrayBuffer) {
    this.#cells = buffer === undefined ? newCells(Thread.length) : new BigInt64Array(buffer);
  }

  get buffer(): SharedArrayBuffer {
    return this.#cells.buffer;
  }

  /** How far the upper bound on the time (`hi`) is ahead of the steady clock. Written by the thread that renews. */
  get upperLeadMs(): number {
    return toMs(Atomics.load(this.#cells, Thread.upperLead));
  }

  set upperLeadMs(ms: number) {
    Atomics.store(this.#cells, Thread.upperLead, up(ms));
  }

  /** When the program's thread was last seen at work, on the steady clock. Written by that thread. */
  get signOfLifeMs(): number {
    return toMs(Atomics.load(this.#cells, Thread.signOfLife));
  }

  set signOfLifeMs(ms: number) {
    Atomics.store(this.#cells, Thread.signOfLife, down(ms));
  }
}

/** How long one grant is valid, on both clocks. */
export class SharedValidity {
  readonly #cells: BigInt64Array<SharedArrayBuffer>;

  constructor(buffer?: SharedArrayBuffer) {
    this.#cells = buffer === undefined ? newCells(Grant.length) : new BigInt64Array(buffer);
  }

  get buffer(): SharedArrayBuffer {
    return this.#cells.buffer;
  }

  /** A renewal was decided: the ends on the wall clock and on the steady one. */
  extend(untilMs: number, endMs: number): void {
    Atomics.store(this.#cells, Grant.until, down(untilMs));
    Atomics.store(this.#cells, Grant.end, down(endMs));
  }

  /** Why the grant has ended, or will end when it runs out. */
  get lossReason(): LossReason | undefined {
    return reasons[Number(Atomics.load(this.#cells, Grant.reason))];
  }

  set lossReason(reason: LossReason) {
    Atomics.store(this.#cells, Grant.reason, BigInt(reasons.indexOf(reason)));
  }

  /** For ever. MUST come before anything that lets another have the resource. */
  finish(reason: LossReason): void {
    this.lossReason = reason;
    Atomics.store(this.#cells, Grant.over, 1n);
  }

  /**
   * Milliseconds for which the grant is valid, 0 when it is not. The clocks are read after the ends, and the mark of
   * the end after the clocks: a thread that is stopped between two of these steps is told less, not more.
   */
  remainingMs(threads: SharedThreads, readWallMs: () => number, readSteadyMs: () => number): number {
    const untilMs = toMs(Atomics.load(this.#cells, Grant.until));
    const endMs = toMs(Atomics.load(this.#cells, Grant.end));
    const upperLeadMs = threads.upperLeadMs;
    const wallMs = readWallMs();
    const steadyMs = readSteadyMs();
    if (Atomics.load(this.#cells, Grant.over) !== 0n) return 0;
    const upperMs = Math.max(wallMs, steadyMs + upperLeadMs);
    return Math.max(0, Math.min(untilMs - upperMs, endMs - steadyMs));
  }
}
