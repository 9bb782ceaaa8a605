import { stretched } from "leasehold/inner/common/clock-rates.js";
import type { Claim, StorageReport, StorageObserver, WorldView } from "../stage/observer.js";
import type { SimParty } from "../../kit/party.js";

/** How many waits may pass without a winner. A lost claim costs one wait, and so does a cancelled one. */
const waitsMax = 4;

/**
 * Progress: where delays are bounded and participants want the resource, one of them gets it (Property 2,
 * Lemma 3; Property 5 once delays have become bounded). A crashed holder is replaced after its wait, and
 * contenders do not block each other for ever.
 */
export class Progress implements StorageObserver {
  readonly #view: WorldView;
  readonly #report: StorageReport;
  readonly #wanting = new Set<SimParty>();
  #sinceMs = Infinity;
  #givenUp = 0;

  constructor(view: WorldView, report: StorageReport) {
    this.#view = view;
    this.#report = report;
  }

  wants(party: SimParty, wants: boolean): void {
    if (wants) this.#wanting.add(party);
    else this.#wanting.delete(party);
  }

  gaveUp(): void {
    this.#givenUp += 1;
  }

  began(): void {
    this.#sinceMs = Infinity;
  }

  disturbed(party: SimParty | undefined): void {
    if (party?.isAlive === false) this.#wanting.delete(party);
    this.#sinceMs = Infinity;
  }

  looked(): void {
    const { nowMs, settledMs, claims, waitMs, plan } = this.#view;
    const isHeld = [...claims].some((claim: Claim) => claim.remainingMs() > 0);
    if (nowMs < settledMs || this.#wanting.size === 0 || isHeld) this.#sinceMs = Infinity;
    else if (this.#sinceMs === Infinity) [this.#sinceMs, this.#givenUp] = [nowMs, 0];
    else if (nowMs - this.#sinceMs > stretched((waitsMax + this.#givenUp) * waitMs, plan.clockRateError))
      this.#report("progress", `nobody has got it for ${Math.round(nowMs - this.#sinceMs)} ms`);
  }
}
