import type { Claim, StorageReport, StorageObserver } from "../stage/observer.js";

/**
 * What is fenced is never harmed, whatever the delays: once it has taken the write of another tenure, it takes none of an
 * earlier one any more, also while two believe that they hold.
 */
export class Guard implements StorageObserver {
  readonly #report: StorageReport;
  #writing: Claim | undefined;
  readonly #past = new Set<Claim>();

  constructor(report: StorageReport) {
    this.#report = report;
  }

  guarded(claim: Claim): void {
    if (claim.shared) return;
    if (this.#past.has(claim)) this.#report("guard", `${claim.party.writer} writes after its successor`);
    if (this.#writing !== undefined && this.#writing !== claim) this.#past.add(this.#writing);
    this.#writing = claim;
  }
}
