import { CommandFailure } from "../../common/failure.js";

/** Stable codes of the refusals of `leasehold cert`. */
export type CertCode =
  /** The file exists, and nothing is overwritten. */
  | "CERT_EXISTS"
  /** The folder has no authority, or its private key is missing or does not fit. */
  | "CERT_NO_AUTHORITY"
  /** The name, host or cluster cannot be in a certificate. */
  | "CERT_NAME"
  /** The file holds no certificate or key, or one that this command does not make. */
  | "CERT_UNREADABLE"
  /** Another step of the rotation is next. */
  | "CERT_STEP"
  /** The command `openssl` is missing or has failed. */
  | "CERT_OPENSSL";

export function certFailure(code: CertCode, message: string): CommandFailure {
  return new CommandFailure(code === "CERT_OPENSSL" ? "unexpected" : "usage", message, code);
}
