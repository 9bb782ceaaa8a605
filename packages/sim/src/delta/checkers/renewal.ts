import { stretched } from "leasehold/inner/common/clock-rates.js";
import type { Claim, StorageReport, StorageObserver, WorldView } from "../stage/observer.js";
import type { SimParty } from "../../kit/party.js";
import { renewalDelays } from "../stage/plan.js";

/**
 * Renewal: where delays are bounded, a holder that renews in time keeps its hold (Property 3, Lemma 5;
 * Property 6, Lemma 8 once delays have become bounded). A live leader is never deposed. Processes that were
 * stopped meanwhile are not judged.
 */
export class Renewal implements StorageObserver {
  readonly #view: WorldView;
  readonly #report: StorageReport;
  readonly #inTime = new Set<SimParty>();

  constructor(view: WorldView, report: StorageReport) {
    this.#view = view;
    this.#report = report;
  }

  renewing(claim: Claim, leftMs: number): void {
    const { nowMs, settledMs, plan, recovering } = this.#view;
    // With one store missing and another that holds a loser's record, a majority may be out of reach for a
    // while.
    if (recovering) return;
    // Other processes may break the lease.
    if (plan.meddleEveryMs < Infinity) return;
    const neededMs = stretched((renewalDelays - 1) * plan.delayMs, plan.clockRateError);
    if (nowMs >= settledMs && leftMs > neededMs) this.#inTime.add(claim.party);
  }

  disturbed(party: SimParty | undefined): void {
    if (party === undefined) this.#inTime.clear();
    else this.#inTime.delete(party);
  }

  renewed(claim: Claim, succeeded: boolean): void {
    if (this.#inTime.delete(claim.party) && !succeeded)
      this.#report("renewal", `${claim.party.writer} renewed in time, and lost ${claim.token}`);
  }
}
