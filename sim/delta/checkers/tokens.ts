import type { Claim, StorageReport, StorageObserver, WorldView } from "../observer.js";

/**
 * Tokens: no two tenures ever have the same, whatever the delays, except readers of one time; and each is greater than
 * every earlier one, always on the conditional lease, otherwise once delays are bounded.
 */
export class Tokens implements StorageObserver {
  readonly #view: WorldView;
  readonly #report: StorageReport;
  /** Whether a reader's. */
  readonly #given = new Map<bigint, boolean>();
  #greatest = 0n;

  constructor(view: WorldView, report: StorageReport) {
    this.#view = view;
    this.#report = report;
  }

  began({ party, token, shared }: Claim): void {
    const { plan, nowMs, settledMs } = this.#view;
    const givenShared = this.#given.get(token);
    if (givenShared !== undefined && !(givenShared && shared))
      this.#report("tokens", `the token ${token} is given out twice, now to ${party.writer}`);
    this.#given.set(token, shared);
    if (plan.ground !== "conditional" && nowMs < settledMs) return;
    if (token < this.#greatest)
      this.#report("tokens", `${party.writer} gets token ${token} after ${this.#greatest}`);
    this.#greatest = token;
  }
}
