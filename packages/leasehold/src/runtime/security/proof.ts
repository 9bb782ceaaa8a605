import type { AuthFault } from "./auth-fault.js";
import { roles } from "./roles.js";
import type { Role } from "./roles.js";

/** What the other side of a connection has proven before its first frame is looked at. */
export interface Proof {
  /** What it may be. */
  readonly roles: readonly Role[];
  /** The cluster that it may take part in; `undefined` when its credentials do not say. */
  readonly cluster?: string;
  /** The member that it may be; `undefined` when its credentials do not say. */
  readonly memberId?: string;
  /** Its credentials, for messages: `the certificate of …`. */
  readonly by: string;
  /** Whose credentials they are, if they are one participant's: what it takes is counted together. */
  readonly account?: string;
}

/** Plain TCP proves nothing: every peer that reaches the port is believed. */
export const nothingAsked: Proof = { roles, by: "plain TCP" };

/** What somebody says that it is, as far as that is known. */
export interface Claim {
  readonly role?: Role | undefined;
  readonly cluster?: string | undefined;
  readonly memberId?: string | undefined;
}

/** What of a claim the proof does not cover; nothing, if it covers it all. */
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
