import type { AuthCause } from "../../../runtime/security/auth-fault.js";
import type { RejectReason, Rejection } from "../wire/hello.js";

const reasonOf: Partial<Record<AuthCause, RejectReason>> = { cluster: "cluster", role: "forbidden" };

/** A rejection as this side knows it. */
export interface LocalRejection extends Rejection {
  /** The fault of the credentials, if any. It is counted and not sent. */
  readonly auth?: AuthCause;
}

export function authRejection(cause: AuthCause, text: string): LocalRejection {
  return { auth: cause, reason: reasonOf[cause] ?? "unauthenticated", text };
}
