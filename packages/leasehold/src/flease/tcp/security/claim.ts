import type { Claim } from "../../../runtime/security/proof.js";
import type { Identity } from "../wire/identity.js";

/** A peer's claim. A peer that does not know its cluster yet is taken to mean ours. */
export function claimOf({ role, nodeId, cluster }: Identity, ours: Identity): Claim {
  return { role, memberId: nodeId, cluster: cluster === "" ? ours.cluster : cluster };
}
