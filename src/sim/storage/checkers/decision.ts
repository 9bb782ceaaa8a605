import type { Report, StorageObserver, WorldView } from "../observer.js";
import type { SimProcess } from "../process.js";

/** Every correct process decides once delays are bounded (Fig. 8, Lemma 11). */
export class Decision implements StorageObserver {
  readonly #view: WorldView;
  readonly #report: Report;
  readonly #decided = new Set<SimProcess>();
  #crashedMs = 0;

  constructor(view: WorldView, report: Report) {
    this.#view = view;
    this.#report = report;
  }

  decided(process: SimProcess): void {
    this.#decided.add(process);
  }

  disturbed(): void {
    this.#crashedMs = this.#view.nowMs;
  }

  over(): void {
    const { plan, processes, settledMs, nowMs, waitMs } = this.#view;
    const quietMs = nowMs - Math.max(settledMs, this.#crashedMs);
    if (plan.ground !== "consensus" || quietMs < 5 * waitMs) return;
    for (const process of processes)
      if (process.isAlive && !this.#decided.has(process))
        this.#report("decision", `${process.writer} has not decided`);
  }
}
