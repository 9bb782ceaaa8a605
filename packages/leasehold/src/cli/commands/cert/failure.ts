import { CommandFailure } from "../../common/failure.js";

/** Stable codes with which `leasehold cert` refuses. */
export type CertCode =
  /** The file exists, and nothing is overwritten. */
  | "CERT_EXISTS"
  /** The folder has no authority, or its private key is missing or doesn't match. */
  | "CERT_NO_AUTHORITY"
  /** The name, host or cluster is not allowed in a certificate. */
  | "CERT_NAME"
  /** The file contains no certificate or key, or one of a kind that this command does not make. */
  | "CERT_UNREADABLE"
  /** The rotation has to continue with a different step. */
  | "CERT_STEP"
  /** The command `openssl` is missing or has failed. */
  | "CERT_OPENSSL";

export function certFailure(code: CertCode, message: string): CommandFailure {
  return new CommandFailure(code === "CERT_OPENSSL" ? "unexpected" : "usage", message, code);
}
