import type { AcceptorStep, Observer, FleaseReport, WorldView } from "../stage/observer.js";

/**
 * I6: at an acceptor a lease changes its owner only after it has ended there. I7: later writes of its owner
 * never shorten it.
 */
export class Guard implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
  }

  handled({ node, request, before, after }: AcceptorStep): void {
    if (!before.present || before.leaseOwner === "" || before.released || after === undefined) return;
    const what = `${node.name}'s lease of ${request.resource} for ${before.leaseOwner}`;
    if (after.leaseOwner !== before.leaseOwner) {
      const now = node.look();
      const over =
        Math.min(now.lo, now.hi) >= before.leaseExpiresWallMs + this.#view.settings.maxClockSkewMs &&
        now.mono >= before.leaseExpiresMonoMs;
      if (!over) this.#report("I6", `${what} passes to ${after.leaseOwner} before it is over`);
    } else if (!after.released) {
      if (
        after.leaseExpiresWallMs < before.leaseExpiresWallMs ||
        after.leaseExpiresMonoMs < before.leaseExpiresMonoMs
      )
        this.#report("I7", `${what} gets shorter`);
    }
  }
}
