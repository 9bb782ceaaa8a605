import { authRejection } from "./auth-fault.js";
import type { LocalRejection } from "./auth-fault.js";
import { roles } from "../wire/identity.js";
import type { Identity, Role } from "../wire/identity.js";

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

/** Holds what a peer says of itself against what it has proven: a reason to refuse it, or nothing. */
export function unprovenClaim(proof: Proof, ours: Identity, theirs: Identity): LocalRejection | undefined {
  const cluster = theirs.cluster === "" ? ours.cluster : theirs.cluster;
  if (proof.cluster !== undefined && proof.cluster !== cluster) {
    return authRejection(
      "cluster",
      `${proof.by} is good for the cluster ${JSON.stringify(proof.cluster)} and not for ${JSON.stringify(cluster)}`,
    );
  }
  if (!proof.roles.includes(theirs.role)) {
    return authRejection(
      "role",
      `${proof.by} does not allow to be a ${theirs.role}, only ${proof.roles.join(" or ")}`,
    );
  }
  if (theirs.role === "member" && proof.memberId !== undefined && proof.memberId !== theirs.nodeId) {
    return authRejection(
      "memberId",
      `${proof.by} is good for the member ${JSON.stringify(proof.memberId)} and not for ${JSON.stringify(theirs.nodeId)}`,
    );
  }
  return undefined;
}
