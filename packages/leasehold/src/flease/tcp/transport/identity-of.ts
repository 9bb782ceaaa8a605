import type { Link } from "./link.js";

/** The participant at the other end of a connection, for the audit trail. */
export interface AuditIdentity {
  /** Its proven identity: `member b`, a certificate's subject; without one its network address. */
  readonly by: string;
  /** The name and incarnation that it has chosen. */
  readonly name: string;
  readonly address: string;
}

export function identityOf({ account, owner, address }: Link): AuditIdentity {
  return { by: account, name: owner, address };
}
