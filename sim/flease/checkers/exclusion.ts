import type { Hold, Observer, FleaseReport } from "../observer.js";

/** I1: no two nodes hold one resource at one instant, each by its own clocks. */
export class Exclusion implements Observer {
  readonly #report: FleaseReport;

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  looked(resource: string, holds: readonly Hold[]): void {
    let first: Hold | undefined;
    for (const hold of holds) {
      if (!hold.valid) continue;
      if (first !== undefined) {
        const both = `${first.node.name} (token ${first.slot.token}) and ${hold.node.name} (token ${hold.slot.token})`;
        this.#report("I1", `${both} both hold ${resource}`);
        return;
      }
      first = hold;
    }
  }
}
