import { faults } from "#core-faults";
import { type DeadlineItem, Deadlines } from "../../lease/deadlines.js";
import type { LeaseState } from "../state/leases.js";

/**
 * When leases end. "Only the leader tracks the timeouts": it has `LeaderTracker`, everybody else `untracked` (*Patterns of
 * Distributed Systems*, "Lease").
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
   * Less than its whole time may be written down of it: that has to be put right before a refresh is acknowledged.
   * @param wholeIndex where its whole time has been written for this refresh, and applied; 0: nowhere
   */
  isWrittenShort(id: bigint, wholeIndex: number): boolean;
  /** Leases of which less is left, by so much, than is written down of them; at most so many. */
  shorter(nowMs: number, byMs: number, leasesMax: number): TimeLeft[];
  /** That stands in the log now, applied or not. */
  wroteShort(left: readonly TimeLeft[], index: number): void;
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
  shorter: () => [],
  wroteShort() {},
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

export class LeaderTracker implements LeaseTracker {
  readonly #leases = new Map<bigint, Tracked>();
  readonly #deadlines = new Deadlines<Tracked>();

  /**
   * A new leader does not know when leases were refreshed: each has its full remaining life again. The extra time is what
   * passed, at most, between a refresh that the last leader acknowledged and the election.
   */
  constructor(leases: Iterable<LeaseState>, nowMs: number, extraMs: number) {
    for (const lease of leases) {
      const item = this.#track(lease);
      item.writtenMs = Math.min(lease.leftMs ?? item.ttlMs, item.ttlMs);
      this.#deadlines.schedule(item, nowMs + (faults.noExtraLife ? 0 : item.writtenMs + extraMs));
    }
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
      dueMs: 0,
      heapIndex: -1,
      heapSequence: 0,
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
    const item = this.#leases.get(id);
    if (item === undefined || (item.isEnding && !faults.refreshAfterEndProposed)) return 0;
    this.#deadlines.schedule(item, nowMs + item.ttlMs);
    return item.ttlMs / 1_000;
  }

  leftMs(id: bigint, nowMs: number): number | undefined {
    const item = this.#leases.get(id);
    if (item === undefined) return undefined;
    return item.isEnding ? 0 : Math.max(0, item.dueMs - nowMs);
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
      const item = this.#leases.get(id)!;
      item.isEnding = false;
      this.#deadlines.schedule(item, nowMs);
    }
  }

  isWrittenShort(id: bigint, wholeIndex: number): boolean {
    const item = this.#leases.get(id);
    if (item === undefined || item.isEnding || faults.oldTimeStays) return false;
    if (wholeIndex > item.shortIndex) item.writtenMs = item.ttlMs;
    return item.writtenMs < item.ttlMs;
  }

  shorter(nowMs: number, byMs: number, leasesMax: number): TimeLeft[] {
    const shorter: TimeLeft[] = [];
    for (const { id, dueMs, isEnding, writtenMs } of this.#leases.values()) {
      const leftMs = Math.max(0, Math.ceil(dueMs - nowMs));
      if (isEnding || leftMs > writtenMs - byMs) continue;
      shorter.push({ id, leftMs });
      if (shorter.length === leasesMax) break;
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
