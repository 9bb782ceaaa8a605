import type { AuthFault } from "./auth-fault.js";
import { roles } from "./roles.js";
import type { Role } from "./roles.js";

/** The proven facts about a peer, before its first frame is read. */
export interface Proof {
  /** The roles that the peer may have. */
  readonly roles: readonly Role[];
  /** The cluster that the peer may join; `undefined` if its credentials don't name one. */
  readonly cluster?: string;
  /** The member that the peer may be; `undefined` if its credentials don't name one. */
  readonly memberId?: string;
  /** The peer's credentials, for messages: `the certificate of …`. */
  readonly by: string;
  /**
   * The owner of the credentials, if they belong to one participant: resources are accounted for each owner.
   */
  readonly account?: string;
}

/** Plain TCP proves nothing: every peer that reaches the port is trusted. */
export const nothingAsked: Proof = { roles, by: "plain TCP" };

/** A participant's claim about itself, as far as known. */
export interface Claim {
  readonly role?: Role | undefined;
  readonly cluster?: string | undefined;
  readonly memberId?: string | undefined;
}

/** The part of a claim that the proof does not cover; `undefined` if it covers all. */
export function unprovenClaim(proof: Proof, claim: Claim): AuthFault | undefined {
  const { by, roles: allowed } = proof;
  const { role } = claim;
  const differs = (what: "cluster" | "memberId") =>
    proof[what] !== undefined && claim[what] !== undefined && proof[what] !== claim[what];
  const isGoodFor = (what: "cluster" | "memberId", name: string) =>
    `${by} is good for the ${name} ${JSON.stringify(proof[what])} and not for ${JSON.stringify(claim[what])}`;
  if (differs("cluster")) return { cause: "cluster", text: isGoodFor("cluster", "cluster") };
  if (role !== undefined && !allowed.includes(role))
    return { cause: "role", text: `${by} does not allow to be a ${role}, only ${allowed.join(" or ")}` };
  if (role === "member" && differs("memberId"))
    return { cause: "memberId", text: isGoodFor("memberId", "member") };
  return undefined;
}
