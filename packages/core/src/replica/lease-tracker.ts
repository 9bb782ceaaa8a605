import { type DeadlineItem, Deadlines } from "leasehold/common";
import type { LeaseState, Leases } from "../state/leases.js";

/**
 * When leases end. "Only the leader tracks the timeouts": it has `LeaderTracker`, everybody else `untracked`
 * (*Patterns of Distributed Systems*, "Lease").
 */
export interface LeaseTracker {
  granted(lease: LeaseState, nowMs: number): void;
  ended(id: bigint): void;
  /** Its time to live begins anew. Seconds; 0 if there is no such lease, or its end has been proposed. */
  refresh(id: bigint, nowMs: number): number;
  /** Undefined if there is no such lease; 0 if its end has been proposed. */
  leftMs(id: bigint, nowMs: number): number | undefined;
  /** Leases that have run out, at most so many. From now on they can't be refreshed any more. */
  takeDue(nowMs: number, leasesMax: number): bigint[];
  /** Their end could not be proposed: they run out again at once, unless they are refreshed. */
  putBack(ids: readonly bigint[], nowMs: number): void;
  /**
   * Less than its whole time may be written down of it: that has to be put right before a refresh is
   * acknowledged.
   * @param wholeIndex where its whole time has been written for this refresh, and applied; 0: nowhere
   */
  isWrittenShort(id: bigint, wholeIndex: number): boolean;
  /**
   * Leases of which less is left, by so much, than is written down of them; at most so many. It looks at a
   * bounded number each time, and goes on from there: undefined in the end, when it has looked at all.
   */
  shorter(nowMs: number, byMs: number, leasesMax: number): TimeLeft[] | undefined;
  /** That stands in the log now, applied or not. */
  wroteShort(left: readonly TimeLeft[], index: number): void;
  /** Not all leases are tracked yet that were there when it began. */
  readonly isBeginning: boolean;
  /** Tracks some more of them. @returns how many it has looked at */
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
  /** Its end is in the log. Only a change of leader can prevent it. */
  isEnding: boolean;
  /** What a next leader might find written of it: proposed by this one, or by one before. */
  writtenMs: number;
  /** Where this leader wrote less than the whole. */
  shortIndex: number;
}

/** So many are looked at at a time for what is left of them: less than a millisecond. */
const looksMax = 8_192;

/**
 * It begins with as many leases as there are, which are tracked in pieces, so that a new leader is heard of
 * meanwhile. One that is asked for before it is its turn is tracked at once: a caller finds all of them from
 * the beginning.
 */
export class LeaderTracker implements LeaseTracker {
  /** All that there are now, as the log has them. */
  readonly #known: Leases;
  readonly #beginMs: number;
  readonly #extraMs: number;
  /** Those that were there at the beginning, and perhaps are not any more. */
  #rest: Iterator<LeaseState> | undefined;
  readonly #leases = new Map<bigint, Tracked>();
  readonly #deadlines = new Deadlines<Tracked>();
  #looking: Iterator<Tracked> | undefined;

  /**
   * A new leader does not know when leases were refreshed: each has its full remaining life again. The extra
   * time is what passed, at most, between a refresh that the last leader acknowledged and the election.
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

  /** What has been granted since is tracked already. */
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
