import type { Observer, FleaseReport } from "../observer.js";
import type { Claim } from "../waist/claims.js";

/** I2, as programs see it: each is given a greater token than everybody before it. */
export class ProgramTokens implements Observer {
  readonly #report: FleaseReport;
  readonly #greatest = new Map<string, number>();

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  claimBegan({ node, resource, token }: Claim): void {
    const greatest = this.#greatest.get(resource) ?? 0;
    if (token <= greatest)
      this.#report("I2", `a program of ${node.name} gets token ${token} of ${resource} after ${greatest}`);
    this.#greatest.set(resource, Math.max(greatest, token));
  }
}
