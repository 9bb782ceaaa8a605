import { type DeadlineItem, Deadlines } from "../common/deadlines.js";

/**
 * Concurrent renewals of one participant. The limit is far more than fit in a round trip, and few enough for
 * members to answer well before the timeout: further renewals of a burst would only queue at the members.
 */
export const renewalsUnderWayMax = 4_096;

/**
 * Renewals begun in one turn. Answers to earlier renewals are read between turns, even when turns are slow.
 */
export const renewalsPerTurn = 256;

/**
 * A waiting renewal is late when less than this part of its lease is left. It was requested when two thirds
 * were left.
 */
const lateLeft = 1 / 2;

/**
 * Waiting renewals, ordered by the ends of their leases, earliest first. A participant that cannot renew as
 * often as it should then renews each lease less often, but none too late.
 */
export class RenewalQueue<T extends DeadlineItem> {
  readonly #waiting = new Deadlines<T>();
  #underWay = 0;

  add(renewal: T, endMono: number, ttlMs: number): void {
    this.#waiting.schedule(renewal, endMono - lateLeft * ttlMs);
  }

  /** The next renewal that may begin now. Its end must be reported by calling `ended`. */
  next(): T | undefined {
    if (!this.mayBegin) return undefined;
    this.#underWay += 1;
    return this.#waiting.popDue(Infinity);
  }

  ended(): void {
    this.#underWay -= 1;
  }

  /** Removes a renewal that has not begun. False when it has. */
  remove(renewal: T): boolean {
    return this.#waiting.cancel(renewal);
  }

  get waits(): boolean {
    return this.#waiting.size > 0;
  }

  /** Whether a renewal waits and the limit of concurrent ones is not reached. */
  get mayBegin(): boolean {
    return this.waits && this.#underWay < renewalsUnderWayMax;
  }

  /**
   * Whether more renewals wait than may be in flight. A renewal that would be answered too late gives way to
   * another: otherwise all would be renewed at the last moment, and a short delay would end them all.
   */
  get isCrowded(): boolean {
    return this.#waiting.size > renewalsUnderWayMax;
  }

  /** Whether held leases are not being renewed in time, so that nothing new should begin. */
  isLate(mono: number): boolean {
    return this.#waiting.nextDueMs() <= mono;
  }
}
