import type { Observer, FleaseReport, WorldView } from "../stage/observer.js";

/**
 * L1 for waiters on the lease layer. After the last fault every program has enough time to acquire its
 * resource once more and keep it briefly. A waiter that still waits at the end was forgotten.
 */
export class Waiters implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
  }

  calmEnded(): void {
    for (const { node, resource, sinceMs } of this.#view.claims.waiting()) {
      const waitedMs = Math.round(this.#view.nowMs - sinceMs);
      this.#report("L1", `a program of ${node.name} has waited ${waitedMs} ms for ${resource}`);
      return;
    }
  }
}
