import { type DeadlineItem, Deadlines } from "leasehold/common";
import type { LeaseState, Leases } from "../state/leases.js";

/**
 * Expiry of leases. "Only the leader tracks the timeouts": it has `LeaderTracker`, all others `untracked`
 * (*Patterns of Distributed Systems*, "Lease").
 */
export interface LeaseTracker {
  granted(lease: LeaseState, nowMs: number): void;
  ended(id: bigint): void;
  /**
   * Restarts the lease's time to live. Returns it in seconds; 0 if there is no such lease, or its end has
   * been proposed.
   */
  refresh(id: bigint, nowMs: number): number;
  /** Undefined if there is no such lease; 0 if its end has been proposed. */
  leftMs(id: bigint, nowMs: number): number | undefined;
  /** Takes at most `leasesMax` expired leases, which can no longer be refreshed. */
  takeDue(nowMs: number, leasesMax: number): bigint[];
  /** The end of these could not be proposed: they expire again at once, unless they are refreshed. */
  putBack(ids: readonly bigint[], nowMs: number): void;
  /**
   * Whether the log may have less than the lease's full time: that must be corrected before a refresh is
   * acknowledged.
   * @param wholeIndex index of an applied entry that wrote its full time for this refresh; 0: none
   */
  isWrittenShort(id: bigint, wholeIndex: number): boolean;
  /**
   * Leases with at least `byMs` less time left than the log has; at most `leasesMax`. Each call visits a
   * bounded number and continues from the previous one; undefined at the end of the pass.
   */
  shorter(nowMs: number, byMs: number, leasesMax: number): TimeLeft[] | undefined;
  /** These times are now in the log, applied or not. */
  wroteShort(left: readonly TimeLeft[], index: number): void;
  /** Some leases from before this leader's start are not tracked yet. */
  readonly isBeginning: boolean;
  /** Tracks some more of them. @returns the number visited */
  goOn(leasesMax: number): number;
}

export interface TimeLeft {
  readonly id: bigint;
  readonly leftMs: number;
}

export const untracked: LeaseTracker = {
  granted() {},
  ended() {},
  refresh: () => 0,
  leftMs: () => undefined,
  takeDue: () => [],
  putBack() {},
  isWrittenShort: () => false,
  shorter: () => undefined,
  wroteShort() {},
  isBeginning: false,
  goOn: () => 0,
};

interface Tracked extends DeadlineItem {
  readonly id: bigint;
  readonly ttlMs: number;
  /** The lease's end is in the log. Only a change of leader can prevent it. */
  isEnding: boolean;
  /** The least time that a later leader might find in the log, proposed by this leader or an earlier one. */
  writtenMs: number;
  /** Index at which this leader wrote less than the full time. */
  shortIndex: number;
}

/** Leases visited at a time to compare remaining times. Takes less than a millisecond. */
const looksMax = 8_192;

/**
 * A leader's tracker. It starts to track existing leases in pieces, so that heartbeats are not delayed. A
 * lease requested earlier is tracked at once, so callers see all leases from the beginning.
 */
export class LeaderTracker implements LeaseTracker {
  /** All leases in the state. */
  readonly #known: Leases;
  readonly #beginMs: number;
  readonly #extraMs: number;
  /** Existing leases not tracked yet; some may be gone. */
  #rest: Iterator<LeaseState> | undefined;
  readonly #leases = new Map<bigint, Tracked>();
  readonly #deadlines = new Deadlines<Tracked>();
  #looking: Iterator<Tracked> | undefined;

  /**
   * A new leader does not know when leases were refreshed, so each gets its full remaining life again. The
   * extra time is the longest possible between the last refresh that the previous leader acknowledged and the
   * election.
   */
  constructor(leases: Leases, nowMs: number, extraMs: number) {
    this.#known = leases;
    this.#beginMs = nowMs;
    this.#extraMs = extraMs;
    this.#rest = leases.all();
  }

  get isBeginning(): boolean {
    return this.#rest !== undefined;
  }

  goOn(leasesMax: number): number {
    for (let count = 0; count < leasesMax; count += 1) {
      const next = this.#rest?.next();
      if (next === undefined || next.done === true) {
        this.#rest = undefined;
        return count;
      }
      this.#find(next.value.id);
    }
    return leasesMax;
  }

  /** Later grants are tracked already. */
  #find(id: bigint): Tracked | undefined {
    const item = this.#leases.get(id);
    if (item !== undefined || this.#rest === undefined) return item;
    const lease = this.#known.get(id);
    return lease && this.#begin(lease);
  }

  #begin(lease: LeaseState): Tracked {
    const item = this.#track(lease);
    item.writtenMs = Math.min(lease.leftMs ?? item.ttlMs, item.ttlMs);
    const leftMs = item.writtenMs + this.#extraMs;
    this.#deadlines.schedule(item, this.#beginMs + leftMs);
    return item;
  }

  granted(lease: LeaseState, nowMs: number): void {
    const item = this.#track(lease);
    this.#deadlines.schedule(item, nowMs + item.ttlMs);
  }

  #track({ id, ttlSeconds }: LeaseState): Tracked {
    const ttlMs = ttlSeconds * 1_000;
    const item: Tracked = {
      id,
      ttlMs,
      isEnding: false,
      writtenMs: ttlMs,
      shortIndex: 0,
      heapIndex: -1,
    };
    this.#leases.set(id, item);
    return item;
  }

  ended(id: bigint): void {
    const item = this.#leases.get(id);
    if (item === undefined) return;
    this.#leases.delete(id);
    this.#deadlines.cancel(item);
  }

  refresh(id: bigint, nowMs: number): number {
    const item = this.#find(id);
    if (item === undefined || item.isEnding) return 0;
    this.#deadlines.schedule(item, nowMs + item.ttlMs);
    return item.ttlMs / 1_000;
  }

  leftMs(id: bigint, nowMs: number): number | undefined {
    const item = this.#find(id);
    if (item === undefined) return undefined;
    return item.isEnding ? 0 : Math.max(0, this.#deadlines.dueMs(item) - nowMs);
  }

  takeDue(nowMs: number, leasesMax: number): bigint[] {
    const due: bigint[] = [];
    while (due.length < leasesMax) {
      const item = this.#deadlines.popDue(nowMs);
      if (item === undefined) break;
      item.isEnding = true;
      due.push(item.id);
    }
    return due;
  }

  putBack(ids: readonly bigint[], nowMs: number): void {
    for (const id of ids) {
      const item = this.#leases.get(id);
      if (item?.isEnding !== true) continue;
      item.isEnding = false;
      this.#deadlines.schedule(item, nowMs);
    }
  }

  isWrittenShort(id: bigint, wholeIndex: number): boolean {
    const item = this.#find(id);
    if (item === undefined || item.isEnding) return false;
    if (wholeIndex > item.shortIndex) item.writtenMs = item.ttlMs;
    return item.writtenMs < item.ttlMs;
  }

  shorter(nowMs: number, byMs: number, leasesMax: number): TimeLeft[] | undefined {
    const shorter: TimeLeft[] = [];
    this.#looking ??= this.#leases.values();
    for (let looks = 0; looks < looksMax && shorter.length < leasesMax; looks += 1) {
      const next = this.#looking.next();
      if (next.done === true) {
        this.#looking = undefined;
        return shorter.length > 0 ? shorter : undefined;
      }
      const { id, isEnding, writtenMs } = next.value;
      if (isEnding) continue;
      const leftMs = Math.max(0, Math.ceil(this.#deadlines.dueMs(next.value) - nowMs));
      if (leftMs <= writtenMs - byMs) shorter.push({ id, leftMs });
    }
    return shorter;
  }

  wroteShort(left: readonly TimeLeft[], index: number): void {
    for (const { id, leftMs } of left) {
      const item = this.#leases.get(id)!;
      item.writtenMs = leftMs;
      item.shortIndex = index;
    }
  }
}
