import type { Claim, StorageReport, StorageObserver } from "../stage/observer.js";

/**
 * The fenced resource is protected whatever the delays: after a write of a later tenure it accepts no write
 * of an earlier one, even while two processes believe that they hold.
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
