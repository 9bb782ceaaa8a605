import type { Claim, StorageObserver, StorageReport } from "../stage/observer.js";

/**
 * Whatever happens to the stores, a lease is not renewed after its break is complete, and a detached lease is
 * taken over at most once.
 */
export class Meddling implements StorageObserver {
  readonly #report: StorageReport;
  readonly #broken = new Set<bigint>();
  /** Renewals in flight that began after that. */
  readonly #late = new Set<Claim>();
  readonly #adopted = new Set<bigint>();

  constructor(report: StorageReport) {
    this.#report = report;
  }

  broken(token: bigint): void {
    this.#broken.add(token);
  }

  renewing(claim: Claim): void {
    if (this.#broken.has(claim.token)) this.#late.add(claim);
  }

  renewed(claim: Claim, succeeded: boolean): void {
    if (this.#late.delete(claim) && succeeded)
      this.#report("broken", `${claim.party.writer} renews ${claim.token}, which is broken`);
  }

  adopted(token: bigint): void {
    if (this.#adopted.has(token)) this.#report("adoption", `${token} is taken over twice`);
    this.#adopted.add(token);
  }
}
