import type { StorageReport, StorageObserver, WorldView } from "../stage/observer.js";
import type { SimParty } from "../../kit/party.js";

/** Every correct process decides once delays are bounded (Fig. 8, Lemma 11). */
export class Decision implements StorageObserver {
  readonly #view: WorldView;
  readonly #report: StorageReport;
  readonly #decided = new Set<SimParty>();
  #crashedMs = 0;

  constructor(view: WorldView, report: StorageReport) {
    this.#view = view;
    this.#report = report;
  }

  decided(party: SimParty): void {
    this.#decided.add(party);
  }

  disturbed(): void {
    this.#crashedMs = this.#view.nowMs;
  }

  over(): void {
    const { plan, processes, settledMs, nowMs, waitMs } = this.#view;
    const quietMs = nowMs - Math.max(settledMs, this.#crashedMs);
    // If a majority of the stores has forgotten or was replaced, one after another, decisions are refused.
    if (plan.forgetEveryMs !== Infinity || plan.replaceEveryMs !== Infinity) return;
    if (plan.ground !== "consensus" || quietMs < 5 * waitMs) return;
    for (const party of processes)
      if (party.isAlive && !this.#decided.has(party))
        this.#report("decision", `${party.writer} has not decided`);
  }
}
