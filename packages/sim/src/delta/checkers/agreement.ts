import type { StorageReport, StorageObserver } from "../stage/observer.js";
import type { SimParty } from "../../kit/party.js";

/**
 * Uniform agreement and validity (Fig. 8, Lemma 11): all processes that ever decide decide the same proposed
 * value.
 */
export class Agreement implements StorageObserver {
  readonly #report: StorageReport;
  readonly #proposed = new Set<string>();
  #value: string | undefined;

  constructor(report: StorageReport) {
    this.#report = report;
  }

  proposed(value: string): void {
    this.#proposed.add(value);
  }

  decided(party: SimParty, value: string): void {
    if (!this.#proposed.has(value)) this.#report("agreement", `nobody proposed ${value}`);
    this.#value ??= value;
    if (value !== this.#value)
      this.#report("agreement", `${party.writer} decides ${value} after ${this.#value}`);
  }
}
