import { validForMs } from "leasehold/inner/flease/protocol/expiry.js";
import type { Observer, FleaseReport } from "../stage/observer.js";
import type { Claim, Look } from "../stage/observer.js";

/** Additions of fractions of a millisecond may round. */
const roundingMs = 0.001;

/**
 * I14, as programs see it: a lost or released lease is never held again, its signal aborts at once, and a
 * lease never claims more time than the hold below it.
 */
export class ProgramContinuity implements Observer {
  readonly #report: FleaseReport;
  readonly #over = new WeakSet<Claim>();

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  claimLooked({ claim, remainingMs, aborted }: Look): void {
    const what = `the lease of ${claim.resource} by the token ${claim.token}`;
    if (remainingMs === 0) {
      this.#over.add(claim);
      if (!aborted) this.#report("I14", `${what} is lost, and its signal does not say so`);
      return;
    }
    const { node } = claim;
    if (this.#over.has(claim)) this.#report("I14", `a program of ${node.name} has ${what} again`);
    if (claim.endedMs !== undefined)
      this.#report("I14", `a program of ${node.name} still has ${what}, which it gave back`);
    const { shared, resource, lease } = claim;
    // A reader holds by its slot, which has another token.
    const instance = node.peer!.proposer.instanceOf(shared ? `${resource}/~${lease.slot}` : resource);
    const isIts = shared || instance?.tokenNumber === claim.token;
    const holds = instance !== undefined && instance.holding && isIts;
    const leftMs = holds
      ? validForMs(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, node.look())
      : 0;
    if (remainingMs > leftMs + roundingMs)
      this.#report("I14", `${what} promises ${remainingMs} ms, and there are ${leftMs}`);
  }
}
