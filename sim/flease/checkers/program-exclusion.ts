import type { Observer, FleaseReport } from "../stage/observer.js";
import type { Claim, Look } from "../stage/observer.js";

/** Claims of one resource that are kept to be compared: the newest ones. What is older is over for long. */
const claimsKept = 64;

/**
 * I1, as programs see it: each of them may rely on what it has from when it was given it until it last looked and saw
 * it held, and no two of these times overlap.
 */
export class ProgramExclusion implements Observer {
  readonly #report: FleaseReport;
  readonly #claims = new Map<string, Claim[]>();

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  claimBegan(claim: Claim): void {
    const claims = this.#claims.get(claim.resource) ?? [];
    claims.push(claim);
    if (claims.length > claimsKept) claims.shift();
    this.#claims.set(claim.resource, claims);
  }

  claimLooked({ claim, remainingMs }: Look): void {
    if (remainingMs === 0) return;
    for (const other of this.#claims.get(claim.resource) ?? []) {
      if (other === claim || other.heldMs < claim.beganMs || claim.heldMs < other.beganMs) continue;
      const names = `${claim.node.name} (token ${claim.token}) and ${other.node.name} (token ${other.token})`;
      this.#report("I1", `programs of ${names} both have ${claim.resource}`);
      return;
    }
  }
}
