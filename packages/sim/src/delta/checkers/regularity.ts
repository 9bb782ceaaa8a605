import { type Stamp, compareStamps } from "leasehold/inner/delta/record/stamp.js";
import type { StorageReport, StorageObserver } from "../stage/observer.js";
import type { SimParty } from "../../kit/party.js";
import { stampText } from "../stage/stage.js";

/** The register is regular, whatever the delays: a read returns no value older than one written before it began. */
export class Regularity implements StorageObserver {
  readonly #report: StorageReport;
  #written: Stamp | undefined;
  readonly #least = new Map<SimParty, Stamp | undefined>();

  constructor(report: StorageReport) {
    this.#report = report;
  }

  written(value: Stamp): void {
    if (compareStamps(value, this.#written) > 0) this.#written = value;
  }

  readBegan(party: SimParty): void {
    this.#least.set(party, this.#written);
  }

  readEnded(party: SimParty, value: Stamp | undefined): void {
    const least = this.#least.get(party);
    if (compareStamps(value, least) < 0)
      this.#report(
        "regularity",
        `${party.writer} reads ${stampText(value)} though ${stampText(least)} was written before`,
      );
  }
}
