import type { Observer, FleaseReport, Tenure } from "../observer.js";

/** I2: each tenure of a resource has a greater token than every earlier one. I3: no two have the same. */
export class Tokens implements Observer {
  readonly #report: FleaseReport;
  readonly #greatest = new Map<string, number>();
  readonly #seen = new Map<string, Set<number>>();

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  tenureBegan(tenure: Tenure): void {
    const { resource, token } = tenure;
    const greatest = this.#greatest.get(resource) ?? 0;
    let seen = this.#seen.get(resource);
    if (seen === undefined) this.#seen.set(resource, (seen = new Set()));
    if (seen.has(token)) this.#report("I3", `the token ${token} of ${resource} is given out twice`);
    if (token <= greatest)
      this.#report("I2", `${tenure.node.name} gets token ${token} of ${resource} after ${greatest}`);
    seen.add(token);
    this.#greatest.set(resource, Math.max(greatest, token));
  }
}
