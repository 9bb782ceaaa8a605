import type { Claim, StorageObserver, StorageReport } from "../stage/observer.js";

/**
 * A lease is not renewed any more once its break is done, whatever happens to the stores; and a detached
 * lease is taken over once at most.
 */
export class Meddling implements StorageObserver {
  readonly #report: StorageReport;
  readonly #broken = new Set<bigint>();
  /** Renewals in flight that have begun after that. */
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
