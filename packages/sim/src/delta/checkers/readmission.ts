import { stretched } from "leasehold/inner/common/clock-rates.js";
import type { StorageReport, StorageObserver, WorldView } from "../stage/observer.js";

/**
 * The limit, in multiples of the required wait, if delays are bounded and some process is always there to
 * wait.
 */
const waitsMax = 5;

/** A store that has forgotten counts again after a while, however short-lived its users are. */
export class Readmission implements StorageObserver {
  readonly #view: WorldView;
  readonly #report: StorageReport;

  constructor(view: WorldView, report: StorageReport) {
    this.#view = view;
    this.#report = report;
  }

  looked(): void {
    const { uncounted, plan, settledMs, nowMs } = this.#view;
    if (uncounted === undefined) return;
    const sinceMs = Math.max(uncounted.forgotAtMs, settledMs);
    const waitMs = stretched(2 * plan.leaseMs + 7 * plan.delayMs, plan.clockRateError);
    if (nowMs - sinceMs > waitsMax * waitMs)
      this.#report("readmission", `${uncounted.name} does not count after ${Math.round(nowMs - sinceMs)} ms`);
  }
}
