import type { Claim, StorageReport, StorageObserver, WorldView } from "../observer.js";

/**
 * Exclusion: no two hold at one instant, each by its own clocks, unless both are readers. On the conditional lease always; on
 * the paper's in a run where delays are bounded (Property 1, Lemma 1), and otherwise once they have been for a while
 * (Property 4, Lemma 8). Holds begin and are extended at events, so it is enough to look then.
 */
export class Exclusion implements StorageObserver {
  readonly #view: WorldView;
  readonly #report: StorageReport;

  constructor(view: WorldView, report: StorageReport) {
    this.#view = view;
    this.#report = report;
  }

  began(claim: Claim): void {
    this.#look(claim);
  }

  renewed(claim: Claim, succeeded: boolean): void {
    if (succeeded) this.#look(claim);
  }

  #look(claim: Claim): void {
    const { plan, nowMs, settledMs, claims } = this.#view;
    if (plan.ground !== "conditional" && nowMs < settledMs) return;
    if (claim.remainingMs() <= 0) return;
    for (const other of claims) {
      if (other === claim || (other.shared && claim.shared) || other.remainingMs() <= 0) continue;
      const [a, b] = [claim, other].map(({ party, token }) => `${party.writer} (token ${token})`);
      this.#report("exclusion", `${a} and ${b} both hold`);
    }
  }
}
