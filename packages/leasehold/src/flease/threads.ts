import { readBothClocks } from "../common/both-clocks.js";
import type { LossReason } from "../lease/errors.js";
import type { Clock } from "../common/ports.js";
import { FleaseClock, emptyReading } from "./protocol/clock.js";
import type { Reading } from "./protocol/clock.js";
import { validForMs } from "./protocol/expiry.js";
import type { FleaseSettings } from "./protocol/settings.js";

/**
 * The validity of a lease, shared by two threads. The thread that renews writes, the thread of the program
 * reads, and neither waits for the other: a busy program keeps its leases, and a look at one
 * of them is right whatever the other thread does.
 *
 * Times are whole microseconds, rounded to the safe side. The ends never go back in one tenure, so a
 * thread that reads one of them old and one new believes in less than the lease is worth, never in more.
 */

/** Reasons by their numbers in shared memory. The first one means that no reason is known. */
const reasons: readonly (LossReason | undefined)[] = [
  undefined,
  "expired",
  "clock-fault",
  "max-hold",
  "closed",
  "released",
  "broken",
];

const usPerMs = 1_000;

const Grant = { expiresWall: 0, expiresMono: 1, over: 2, reason: 3, length: 4 } as const;
const Thread = { upperLead: 0, signOfLife: 1, epoch: 2, distrustedEpoch: 3, length: 4 } as const;

function newCells(length: number): BigInt64Array<SharedArrayBuffer> {
  return new BigInt64Array(new SharedArrayBuffer(length * BigInt64Array.BYTES_PER_ELEMENT));
}

function down(ms: number): bigint {
  return BigInt(Math.floor(ms * usPerMs));
}

function up(ms: number): bigint {
  return BigInt(Math.ceil(ms * usPerMs));
}

function toMs(us: bigint): number {
  return Number(us) / usPerMs;
}

/** The messages between the two threads of one client, besides its leases. */
export class SharedThreads {
  readonly #cells: BigInt64Array<SharedArrayBuffer>;

  constructor(buffer?: SharedArrayBuffer) {
    this.#cells = buffer === undefined ? newCells(Thread.length) : new BigInt64Array(buffer);
  }

  get buffer(): SharedArrayBuffer {
    return this.#cells.buffer;
  }

  /**
   * How far the upper bound on the time (`hi`) is ahead of the steady clock. Written by the thread that
   * renews.
   */
  get upperLeadMs(): number {
    return toMs(Atomics.load(this.#cells, Thread.upperLead));
  }

  set upperLeadMs(ms: number) {
    Atomics.store(this.#cells, Thread.upperLead, up(ms));
  }

  /** The last sign of life of the program's thread, on the steady clock. Written by that thread. */
  get signOfLifeMs(): number {
    return toMs(Atomics.load(this.#cells, Thread.signOfLife));
  }

  set signOfLifeMs(ms: number) {
    Atomics.store(this.#cells, Thread.signOfLife, down(ms));
  }

  /** Grants of another epoch than this are over. Written by the thread that renews. */
  get epoch(): number {
    return Number(Atomics.load(this.#cells, Thread.epoch));
  }

  set epoch(epoch: number) {
    Atomics.store(this.#cells, Thread.epoch, BigInt(epoch));
  }

  /** The epoch in which the program's thread has found the clocks to disagree. Written by that thread. */
  get distrustedEpoch(): number {
    return Number(Atomics.load(this.#cells, Thread.distrustedEpoch)) - 1;
  }

  set distrustedEpoch(epoch: number) {
    Atomics.store(this.#cells, Thread.distrustedEpoch, BigInt(epoch + 1));
  }
}

/**
 * The start of the program thread's clock, sent with a grant: the same anchor as in the thread that renews.
 */
export interface ClockStart {
  readonly epoch: number;
  readonly monoMs: number;
  /** The wall clock as the steady one carries it on. */
  readonly carriedMs: number;
}

/** How the thread that renews publishes its clock to the other. */
export class RenewingThread {
  readonly threads: SharedThreads;
  #owner: string;

  constructor(threads: SharedThreads, owner: string) {
    this.threads = threads;
    this.#owner = owner;
  }

  /**
   * To be called before a validity is extended, before a release, and several times a second. A new owner,
   * and clocks that disagree, end every grant of before at once.
   *
   * @returns false when the program's thread has found that the clocks disagree: then they do so here, too.
   */
  note({ hi, mono, clocksDisagree }: Reading, owner: string): boolean {
    const { threads } = this;
    if (owner !== this.#owner || clocksDisagree) threads.epoch += 1;
    this.#owner = owner;
    threads.upperLeadMs = hi - mono;
    return threads.distrustedEpoch !== threads.epoch;
  }
}

/**
 * The clock of the program's thread: the rules of {@link FleaseClock} on that thread's own readings, from the
 * other thread's anchor and with the other thread's readings. One for all grants of an epoch: clocks that
 * once disagreed end them all.
 */
export class ProgramClock {
  readonly epoch: number;
  readonly #threads: SharedThreads;
  readonly #clock: FleaseClock;
  readonly #reading = emptyReading();
  readonly #ownClock: Clock;

  constructor(
    threads: SharedThreads,
    start: ClockStart,
    settings: Pick<FleaseSettings, "maxClockSkewMs" | "clockRateError">,
    ownClock: Clock,
  ) {
    const { monoMs, carriedMs } = start;
    this.epoch = start.epoch;
    this.#threads = threads;
    this.#clock = new FleaseClock(monoMs, carriedMs, settings.maxClockSkewMs, settings.clockRateError);
    this.#ownClock = ownClock;
  }

  /** One reused record. Its bounds are the later ones of both threads. */
  read(): Reading {
    const now = this.#look((mono, wall) => this.#clock.read(mono, wall, this.#reading));
    if (now.clocksDisagree && this.#threads.epoch === this.epoch) this.#threads.distrustedEpoch = this.epoch;
    return now;
  }

  /** The same without side effects, for observers. */
  peek(): Reading {
    return this.#look((mono, wall) => this.#clock.peek(mono, wall, this.#reading));
  }

  #look(look: (mono: number, wall: number) => Reading): Reading {
    const { upperLeadMs } = this.#threads;
    const { monotonicMs, wallMs } = readBothClocks(this.#ownClock);
    const now = look(monotonicMs, wallMs);
    now.hi = Math.max(now.hi, now.mono + upperLeadMs);
    // After the clocks: the other thread may have ended all grants meanwhile.
    if (this.#threads.epoch !== this.epoch) now.clocksDisagree = true;
    return now;
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

  /**
   * A renewal was decided: the ends on the wall clock and on the steady one, and the one beyond which the
   * tenure must not last.
   */
  extend(expiresWallMs: number, expiresMonoMs: number, latestMs: number): void {
    const isLatest = latestMs <= expiresMonoMs;
    if (isLatest) this.lossReason = "max-hold";
    Atomics.store(this.#cells, Grant.expiresWall, down(expiresWallMs));
    Atomics.store(this.#cells, Grant.expiresMono, down(isLatest ? latestMs : expiresMonoMs));
  }

  /** Why the grant has ended, or will end when it runs out. */
  get lossReason(): LossReason | undefined {
    return reasons[Number(Atomics.load(this.#cells, Grant.reason))];
  }

  set lossReason(reason: LossReason) {
    Atomics.store(this.#cells, Grant.reason, BigInt(reasons.indexOf(reason)));
  }

  /** Ends the grant for ever. MUST precede anything that lets another participant have the resource. */
  finish(reason: LossReason): void {
    this.lossReason = reason;
    Atomics.store(this.#cells, Grant.over, 1n);
  }

  /**
   * Milliseconds for which the grant is valid, 0 when it is not. The clocks are read after the ends, and the
   * mark of the end after the clocks: a thread that is stopped between two of these steps sees less time
   * left, not more.
   */
  remainingMs(read: () => Reading): number {
    const expiresWallMs = toMs(Atomics.load(this.#cells, Grant.expiresWall));
    const expiresMonoMs = toMs(Atomics.load(this.#cells, Grant.expiresMono));
    const now = read();
    if (Atomics.load(this.#cells, Grant.over) !== 0n) return 0;
    return validForMs(expiresWallMs, expiresMonoMs, now);
  }

  /** The lease has not run out by the steady clock: if it has ended, it ended early. */
  lastsAt(monoMs: number): boolean {
    return monoMs < toMs(Atomics.load(this.#cells, Grant.expiresMono));
  }
}
