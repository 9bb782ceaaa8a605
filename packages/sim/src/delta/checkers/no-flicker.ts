import { type Stamp, compareStamps } from "leasehold/inner/delta/record/stamp.js";
import type { StorageReport, StorageObserver } from "../stage/observer.js";
import type { SimParty } from "../../kit/party.js";
import { stampText } from "../stage/stage.js";

/**
 * The values that one reader sees never go back. Otherwise an incomplete write could appear and disappear for
 * ever.
 */
export class NoFlicker implements StorageObserver {
  readonly #report: StorageReport;
  readonly #last = new Map<SimParty, Stamp>();

  constructor(report: StorageReport) {
    this.#report = report;
  }

  readEnded(party: SimParty, value: Stamp | undefined): void {
    const last = this.#last.get(party);
    if (compareStamps(value, last) < 0)
      this.#report("no-flicker", `${party.writer} reads ${stampText(value)} after ${stampText(last)}`);
    if (value !== undefined) this.#last.set(party, value);
  }
}
