import { createHash } from "node:crypto";
import { LeaseholdError } from "../../../lease/errors.js";
import type { Role } from "../../../runtime/security/roles.js";

/** The claims of one side of a connection, sent before anything else (`docs/internals/wire.md`, HELLO). */
export interface Identity {
  readonly role: Role;
  /** 1 to 128 bytes of UTF-8. Unique among members; clients may share one, their incarnations differ. */
  readonly nodeId: string;
  /** 32 hexadecimal digits: a hash of the key that this proposer generated at its start. */
  readonly incarnation: string;
  /** Name of the cluster, 1 to 128 bytes of UTF-8. A client that does not know it yet sends `""`. */
  readonly cluster: string;
  /**
   * 16 bytes as 32 hexadecimal digits. A client that does not know it yet sends `""` (all zero on the
   * wire).
   */
  readonly configHash: string;
  /** Number of the membership view. A client that does not know it yet sends 0. */
  readonly view: number;
  /** Version of the function that maps a resource to its cell. */
  readonly cellFunction: number;
}

/** A participant's claims. Its incarnation follows from the key that it proves to have. */
export type Claims = Omit<Identity, "incarnation">;

export const NODE_ID_BYTES_MAX = 128;
export const CLUSTER_BYTES_MAX = 128;

/**
 * Impersonation takes a second key with the same incarnation: about 2^128 attempts, or 2^98 to match any of a
 * billion owners. A random incarnation of 64 bits would take 2^64, which large machines can do.
 */
const INCARNATION_BYTES = 16;

/** The incarnation of the participant with the private key of `publicKey`. */
export function incarnationOf(publicKey: Uint8Array): string {
  return createHash("sha256")
    .update(publicKey)
    .digest("hex")
    .slice(0, 2 * INCARNATION_BYTES);
}

/**
 * Refuses an identity that HELLO cannot carry.
 *
 * @throws LeaseholdError `INVALID_CONFIG`.
 */
export function checkIdentity(identity: Identity): void {
  const of = `of ${JSON.stringify(identity.nodeId)}`;
  const known = identity.role === "member";
  checkText("a node's name", identity.nodeId, 1, NODE_ID_BYTES_MAX);
  checkText("a cluster's name", identity.cluster, known ? 1 : 0, CLUSTER_BYTES_MAX);
  const hashFits = /^[0-9a-f]{32}$/.test(identity.configHash) || (!known && identity.configHash === "");
  if (!hashFits) invalid(`32 hexadecimal digits make the configuration hash ${of}`);
  if (!Number.isInteger(identity.view) || identity.view < (known ? 1 : 0) || identity.view > 0xffff_ffff) {
    invalid(`the view ${identity.view} is not a number from 1 to 2^32 - 1: the view ${of}`);
  }
}

function checkText(what: string, text: string, bytesMin: number, bytesMax: number): void {
  const bytes = Buffer.byteLength(text);
  if (bytes < bytesMin || bytes > bytesMax)
    invalid(
      `${what} has ${bytes} bytes where ${bytesMin} to ${bytesMax} are allowed: ${JSON.stringify(text)}`,
    );
  if (/\p{Cc}/u.test(text)) invalid(`${what} has a control character: ${JSON.stringify(text)}`);
}

function invalid(message: string): never {
  throw new LeaseholdError("INVALID_CONFIG", message);
}
