import { type DeadlineItem, Deadlines } from "../common/deadlines.js";

/**
 * Renewals of one participant that are under way at a time. Far more than a round trip needs, and few enough
 * that members answer them long before they time out: further ones of a burst would only wait at the members.
 */
export const renewalsUnderWayMax = 4_096;

/**
 * Renewals that one turn begins. Answers to earlier ones are read between two turns, even when turns are
 * slow.
 */
export const renewalsPerTurn = 256;

/**
 * A renewal that has not begun when this part of its lease is left is late. It was wanted when two thirds
 * were left.
 */
const lateLeft = 1 / 2;

/**
 * Waiting renewals. The one whose lease ends first is first: a participant that cannot renew as often as it
 * should renews each lease less often, and none too late.
 */
export class RenewalQueue<T extends DeadlineItem> {
  readonly #waiting = new Deadlines<T>();
  #underWay = 0;

  add(renewal: T, endMono: number, ttlMs: number): void {
    this.#waiting.schedule(renewal, endMono - lateLeft * ttlMs);
  }

  /** The next renewal that may begin now. Its end must be reported by `ended`. */
  next(): T | undefined {
    if (!this.mayBegin) return undefined;
    this.#underWay += 1;
    return this.#waiting.popDue(Infinity);
  }

  ended(): void {
    this.#underWay -= 1;
  }

  /** Takes out a renewal that has not begun. False when it has. */
  remove(renewal: T): boolean {
    return this.#waiting.cancel(renewal);
  }

  get waits(): boolean {
    return this.#waiting.size > 0;
  }

  /** A renewal waits, and not too many are under way. */
  get mayBegin(): boolean {
    return this.waits && this.#underWay < renewalsUnderWayMax;
  }

  /**
   * More renewals wait than may be in flight. One that would be answered too late gives way to another:
   * otherwise all would be renewed at the last moment, and a short delay would end them together.
   */
  get isCrowded(): boolean {
    return this.#waiting.size > renewalsUnderWayMax;
  }

  /** Held leases are not renewed in time: nothing new should begin. */
  isLate(mono: number): boolean {
    return this.#waiting.nextDueMs() <= mono;
  }
}
