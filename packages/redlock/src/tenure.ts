import type { LeaseSet } from "leasehold";
import { Deadline } from "./deadline.js";

/** The longest delay of a timer. */
const timerMsMax = 2 ** 31 - 1;

/**
 * The leases shared by a lock and its extensions. They renew themselves, so this class keeps the end of the
 * lock's duration and releases them then.
 */
export class Tenure {
  readonly leases: LeaseSet;
  #end: Deadline;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  /** @param durationMs from now; Infinity: until {@link release}. */
  constructor(leases: LeaseSet, durationMs: number) {
    this.leases = leases;
    this.#end = new Deadline(durationMs);
    if (durationMs !== Infinity) this.#endInTime();
  }

  /** Milliseconds for which the resources are certainly held. Once it is 0, it stays 0. */
  remainingMs(): number {
    if (this.#isOver) return 0;
    const leftMs = Math.min(this.#end.leftMs(), this.leases.remaining());
    if (leftMs > 0) return leftMs;
    if (this.#end.leftMs() <= 0) void this.release();
    return 0;
  }

  /** Renews the leases, so that they last as long as a renewal allows, and moves the end. */
  async extend(durationMs: number): Promise<void> {
    this.#assertHeld();
    await Promise.all(this.leases.leases.map((lease) => lease.renew()));
    this.#assertHeld();
    if (this.#timer === undefined) return;
    this.#end = new Deadline(durationMs);
    this.#endInTime();
  }

  /** Resolves with true if the leases were held until this call. */
  async release(): Promise<boolean> {
    const wasHeld = !this.#isOver && this.#end.leftMs() > 0 && this.leases.remaining() > 0;
    this.#isOver = true;
    clearTimeout(this.#timer);
    await this.leases.release();
    return wasHeld;
  }

  #assertHeld(): void {
    // Called for its effect: after the end of the duration it releases the leases.
    this.remainingMs();
    this.leases.assertHeld();
  }

  #endInTime(): void {
    clearTimeout(this.#timer);
    const leftMs = Math.ceil(this.#end.leftMs());
    this.#timer = setTimeout(
      () => (this.#end.leftMs() > 0 ? this.#endInTime() : void this.release()),
      Math.min(Math.max(leftMs, 0), timerMsMax),
    );
  }
}
