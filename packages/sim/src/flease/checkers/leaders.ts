import type { Observer, FleaseReport } from "../stage/observer.js";
import type { Claim } from "../stage/observer.js";

/** I1 for elections: the work of a leader has ended before the same campaign leads again. */
export class Leaders implements Observer {
  readonly #report: FleaseReport;
  readonly #working = new Map<object, Claim>();

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  leads(campaign: object, claim: Claim, begins: boolean): void {
    const working = this.#working.get(campaign);
    if (!begins) this.#working.delete(campaign);
    else if (working === undefined) this.#working.set(campaign, claim);
    else
      this.#report(
        "I1",
        `${claim.node.name} leads ${claim.resource} anew while it works by ${working.token}`,
      );
  }
}
