import { LeaseholdError } from "../../../lease/errors.js";
import type { ErrorCode } from "../../../lease/errors.js";
import { protocolVersions } from "../wire/hello.js";
import type { Rejection, RejectReason } from "../wire/hello.js";
import type { Identity } from "../wire/identity.js";

/**
 * Compares a peer's identity with ours. What a client does not know yet is skipped; a member knows
 * everything, so one that claims not to is refused.
 */
export function mismatch(
  ours: Identity,
  decoded: { readonly version: number; readonly identity?: Identity | undefined },
  { oldest, newest } = protocolVersions,
): Rejection | undefined {
  const theirs = decoded.identity;
  const differs = (reason: RejectReason, what: string, here: unknown, there: unknown): Rejection => ({
    reason,
    text:
      `the ${what} differs: ${JSON.stringify(here)} at ${JSON.stringify(ours.nodeId)}, ` +
      `${JSON.stringify(there)} at ${theirs === undefined ? "the other side" : JSON.stringify(theirs.nodeId)}`,
  });
  if (theirs === undefined) {
    const ours = oldest === newest ? newest : `${oldest} to ${newest}`;
    return differs("version", "protocol version", ours, decoded.version);
  }
  const unknown = (field: keyof Identity): boolean =>
    [ours, theirs].some((side) => side.role !== "member" && (side[field] === "" || side[field] === 0));
  if (theirs.cluster !== ours.cluster && !unknown("cluster")) {
    return differs("cluster", "cluster", ours.cluster, theirs.cluster);
  }
  if (theirs.cellFunction !== ours.cellFunction && !unknown("configHash")) {
    return differs("config", "cell function", ours.cellFunction, theirs.cellFunction);
  }
  if (theirs.configHash !== ours.configHash && !unknown("configHash")) {
    return differs("config", "configuration hash", ours.configHash, theirs.configHash);
  }
  if (theirs.view !== ours.view && !unknown("view")) return differs("view", "view", ours.view, theirs.view);
  return undefined;
}

const codeOfReason: Readonly<Record<RejectReason, ErrorCode>> = {
  version: "VERSION_MISMATCH",
  cluster: "CLUSTER_MISMATCH",
  config: "CONFIG_MISMATCH",
  view: "CONFIG_MISMATCH",
  duplicate: "CONFIG_MISMATCH",
  notAdmitted: "CONFIG_MISMATCH",
  full: "UNREACHABLE",
  badFrame: "UNREACHABLE",
  unauthenticated: "UNAUTHENTICATED",
  forbidden: "PERMISSION_DENIED",
  twin: "CONFIG_MISMATCH",
};

/** The error that the dialing side reports for a refusal. */
export function refusalError(address: string, rejection: Rejection, by: "us" | "them"): LeaseholdError {
  const who = by === "us" ? "we refused it" : "it refused us";
  return new LeaseholdError(codeOfReason[rejection.reason], `${address}: ${who}: ${rejection.text}`);
}
