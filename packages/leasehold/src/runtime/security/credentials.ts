import type { ConnectionOptions, TlsOptions as TlsServerOptions, TLSSocket } from "node:tls";
import type { AuthFault, Side } from "./auth-fault.js";
import type { Proof } from "./proof.js";
import type { Role } from "./roles.js";

/** What a participant says of itself in the TLS handshake, where there is no certificate that says it. */
export interface DialingSelf {
  readonly role: Role;
  readonly cluster: string;
}

/**
 * What a participant proves itself with, and what it demands of others: certificates or a cluster key. All
 * cryptography is OpenSSL's, by way of `node:tls`.
 */
export interface Credentials {
  /**
   * Changes whenever the files were read anew: what was made of `serverOptions` before is to be made again.
   */
  readonly version: number;
  /** For accepting connections. */
  serverOptions(): TlsServerOptions;
  /** For one connection that is dialed, in that role. */
  dialOptions(self: DialingSelf): ConnectionOptions;
  /**
   * Who is on the other side of a connection whose TLS handshake is done. Only a proof lets anything be read
   * from it.
   */
  proofOf(socket: TLSSocket, side: Side): Proof | AuthFault;
  /** What a peer said of itself in a handshake that failed, for messages. */
  claimOf(socket: TLSSocket): string | undefined;
  /** The greatest role below a member's that they allow, for a participant that says none. */
  readonly participant: Exclude<Role, "member">;
  /** Ends the watch of the files. */
  close(): void;
}
