import { Exclusion } from "../../kit/checkers/exclusion.js";
import type { Claim, FleaseReport, Look, Observer } from "../stage/observer.js";

/** How many claims of one resource are kept for comparison: the newest ones. Older claims ended long ago. */
const claimsKept = 64;

/**
 * I1, as programs see it: a program may rely on its lease from the grant until its last look that found it
 * held. No two such intervals overlap, unless both belong to readers.
 */
export class ProgramExclusion implements Observer {
  readonly #exclusion: Exclusion<Claim>;
  readonly #claims = new Map<string, Claim[]>();

  constructor(report: FleaseReport) {
    const nameOf = ({ node, token }: Claim) => `a program of ${node.name} (token ${token})`;
    this.#exclusion = new Exclusion(
      { isHeld: () => true, nameOf, isShared: ({ shared }) => shared },
      (text) => report("I1", text),
    );
  }

  claimBegan(claim: Claim): void {
    const claims = this.#claims.get(claim.resource) ?? [];
    claims.push(claim);
    if (claims.length > claimsKept) claims.shift();
    this.#claims.set(claim.resource, claims);
  }

  claimLooked({ claim, remainingMs }: Look): void {
    if (remainingMs === 0) return;
    const meanwhile = (this.#claims.get(claim.resource) ?? []).filter(
      (other) => other !== claim && other.heldMs >= claim.beganMs && claim.heldMs >= other.beganMs,
    );
    this.#exclusion.look(claim.resource, [claim, ...meanwhile]);
  }
}
