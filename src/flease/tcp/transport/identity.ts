import { LeaseholdError } from "../../../lease/errors.js";
import type { ErrorCode } from "../../../lease/errors.js";
import { CLUSTER_BYTES_MAX, NODE_ID_BYTES_MAX, PROTOCOL_VERSION } from "../wire/hello.js";
import type { Rejection, RejectReason } from "../wire/hello.js";
import type { Identity } from "./transport-handler.js";

/** `nodeId.incarnation`: who a ballot belongs to. */
export function ownerOf(identity: Identity): string {
  return `${identity.nodeId}.${identity.incarnation}`;
}

/** Under which name the peer can have one connection at most: a member by its id, all others by their incarnation too. */
export function linkKeyOf(identity: Identity): string {
  return identity.role === "member" ? `member ${identity.nodeId}` : `${identity.role} ${ownerOf(identity)}`;
}

/**
 * Refuses an identity that cannot be written into a HELLO.
 *
 * @throws LeaseholdError `INVALID_CONFIG`.
 */
export function checkIdentity(identity: Identity): void {
  const invalid = (what: string): never => {
    throw new LeaseholdError("INVALID_CONFIG", `${what} of ${JSON.stringify(identity.nodeId)}`);
  };
  const known = identity.role === "member";
  checkText("a node's name", identity.nodeId, 1, NODE_ID_BYTES_MAX);
  checkText("a cluster's name", identity.cluster, known ? 1 : 0, CLUSTER_BYTES_MAX);
  const hashFits = /^[0-9a-f]{32}$/.test(identity.configHash) || (!known && identity.configHash === "");
  if (!hashFits) invalid("32 hexadecimal digits make the configuration hash");
  if (!Number.isInteger(identity.view) || identity.view < (known ? 1 : 0) || identity.view > 0xffff_ffff) {
    invalid(`the view ${identity.view} is not a number from 1 to 2^32 - 1: the view`);
  }
}

function checkText(what: string, text: string, bytesMin: number, bytesMax: number): void {
  const bytes = Buffer.byteLength(text);
  if (bytes < bytesMin || bytes > bytesMax) {
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `${what} has ${bytes} bytes where ${bytesMin} to ${bytesMax} are allowed: ${JSON.stringify(text)}`,
    );
  }
  if (/\p{Cc}/u.test(text)) {
    throw new LeaseholdError("INVALID_CONFIG", `${what} has a control character: ${JSON.stringify(text)}`);
  }
}

/**
 * Holds a peer's identity against ours. What a client does not know yet is not compared; a member knows everything,
 * so that one that claims not to is refused.
 */
export function mismatch(
  ours: Identity,
  decoded: { readonly version: number; readonly identity?: Identity | undefined },
): Rejection | undefined {
  const theirs = decoded.identity;
  const differs = (reason: RejectReason, what: string, here: unknown, there: unknown): Rejection => ({
    reason,
    text:
      `the ${what} differs: ${JSON.stringify(here)} at ${JSON.stringify(ours.nodeId)}, ` +
      `${JSON.stringify(there)} at ${theirs === undefined ? "the other side" : JSON.stringify(theirs.nodeId)}`,
  });
  if (theirs === undefined) return differs("version", "protocol version", PROTOCOL_VERSION, decoded.version);
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

/** What the side that dialed tells its owner of a refusal. */
export function refusalError(address: string, rejection: Rejection, by: "us" | "them"): LeaseholdError {
  const who = by === "us" ? "we refused it" : "it refused us";
  return new LeaseholdError(codeOfReason[rejection.reason], `${address}: ${who}: ${rejection.text}`);
}
