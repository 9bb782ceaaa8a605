import { readBothClocks } from "../common/both-clocks.js";
import type { LossReason } from "../lease/errors.js";
import type { Clock } from "../common/ports.js";
import { FleaseClock, emptyReading } from "./protocol/clock.js";
import type { Reading } from "./protocol/clock.js";
import { validForMs } from "./protocol/expiry.js";
import type { FleaseSettings } from "./protocol/settings.js";

/**
 * The validity of a lease, shared by two threads. The thread that renews writes, the thread of the program
 * reads, and neither waits for the other: a busy program keeps its leases, and can check one correctly
 * whatever the other thread does.
 *
 * Times are whole microseconds, rounded to the safe side. The ends never go back in one tenure, so a thread
 * that reads one old end and one new end sees too little time left, never too much.
 */

/** Reasons by their number in shared memory. The first one means that no reason is known. */
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

/** The shared state of the two threads of one client, apart from its leases. */
export class SharedThreads {
  readonly #cells: BigInt64Array<SharedArrayBuffer>;

  constructor(buffer?: SharedArrayBuffer) {
    this.#cells = buffer === undefined ? newCells(Thread.length) : new BigInt64Array(buffer);
  }

  get buffer(): SharedArrayBuffer {
    return this.#cells.buffer;
  }

  /**
   * How far the upper bound on the time (`hi`) is ahead of the steady clock. Written by the renewing thread.
   */
  get upperLeadMs(): number {
    return toMs(Atomics.load(this.#cells, Thread.upperLead));
  }

  set upperLeadMs(ms: number) {
    Atomics.store(this.#cells, Thread.upperLead, up(ms));
  }

  /** When the program's thread was last seen alive, on the steady clock. Written by that thread. */
  get signOfLifeMs(): number {
    return toMs(Atomics.load(this.#cells, Thread.signOfLife));
  }

  set signOfLifeMs(ms: number) {
    Atomics.store(this.#cells, Thread.signOfLife, down(ms));
  }

  /** Grants of any other epoch are over. Written by the renewing thread. */
  get epoch(): number {
    return Number(Atomics.load(this.#cells, Thread.epoch));
  }

  set epoch(epoch: number) {
    Atomics.store(this.#cells, Thread.epoch, BigInt(epoch));
  }

  /** The epoch in which the program's thread found that the clocks disagree. Written by that thread. */
  get distrustedEpoch(): number {
    return Number(Atomics.load(this.#cells, Thread.distrustedEpoch)) - 1;
  }

  set distrustedEpoch(epoch: number) {
    Atomics.store(this.#cells, Thread.distrustedEpoch, BigInt(epoch + 1));
  }
}

/**
 * The initial state of the program thread's clock, sent with a grant: the same anchor as in the renewing
 * thread.
 */
export interface ClockStart {
  readonly epoch: number;
  readonly monoMs: number;
  /** The wall clock extrapolated by the steady clock. */
  readonly carriedMs: number;
}

/** Publishes the renewing thread's clock to the other thread. */
export class RenewingThread {
  readonly threads: SharedThreads;
  #owner: string;

  constructor(threads: SharedThreads, owner: string) {
    this.threads = threads;
    this.#owner = owner;
  }

  /**
   * To be called before a validity is extended, before a release, and several times a second. A new owner, or
   * clocks that disagree, end every earlier grant at once.
   *
   * @returns false when the program's thread has found that the clocks disagree: then they disagree here,
   *   too.
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
 * The clock of the program's thread. It applies the rules of {@link FleaseClock} to that thread's own
 * readings and those of the other thread, starting from the other thread's anchor. All grants of an epoch
 * share it: clocks that once disagreed end them all.
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

  /** A reused record. Its bounds are the later ones of both threads. */
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
    // Checked after the clocks: the other thread may have ended all grants meanwhile.
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
   * Records a decided renewal: the ends on the wall clock and on the steady clock, and the time that the
   * tenure must not outlast.
   */
  extend(expiresWallMs: number, expiresMonoMs: number, latestMs: number): void {
    const isLatest = latestMs <= expiresMonoMs;
    if (isLatest) this.lossReason = "max-hold";
    Atomics.store(this.#cells, Grant.expiresWall, down(expiresWallMs));
    Atomics.store(this.#cells, Grant.expiresMono, down(isLatest ? latestMs : expiresMonoMs));
  }

  /** Why the grant has ended, or will have ended when it runs out. */
  get lossReason(): LossReason | undefined {
    return reasons[Number(Atomics.load(this.#cells, Grant.reason))];
  }

  set lossReason(reason: LossReason) {
    Atomics.store(this.#cells, Grant.reason, BigInt(reasons.indexOf(reason)));
  }

  /** Ends the grant for good. MUST precede any step that lets another participant have the resource. */
  finish(reason: LossReason): void {
    this.lossReason = reason;
    Atomics.store(this.#cells, Grant.over, 1n);
  }

  /**
   * How long the grant is valid, ms; 0 when it is not. The clocks are read after the ends, and the end marker
   * after the clocks: a thread that is stopped between two of these steps sees less time left, not more.
   */
  remainingMs(read: () => Reading): number {
    const expiresWallMs = toMs(Atomics.load(this.#cells, Grant.expiresWall));
    const expiresMonoMs = toMs(Atomics.load(this.#cells, Grant.expiresMono));
    const now = read();
    if (Atomics.load(this.#cells, Grant.over) !== 0n) return 0;
    return validForMs(expiresWallMs, expiresMonoMs, now);
  }

  /** The lease has not expired by the steady clock: if it has ended, it ended early. */
  lastsAt(monoMs: number): boolean {
    return monoMs < toMs(Atomics.load(this.#cells, Grant.expiresMono));
  }
}
