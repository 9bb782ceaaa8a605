import type { ConnectionOptions, TlsOptions as TlsServerOptions, TLSSocket } from "node:tls";
import type { AuthFault, Side } from "./auth-fault.js";
import type { Proof } from "./proof.js";
import type { Role } from "./roles.js";

/** A participant's claim in the TLS handshake, where no certificate has it. */
export interface DialingSelf {
  readonly role: Role;
  readonly cluster: string;
}

/**
 * The credentials of a participant, and its requirements on peers: certificates or a cluster key. All
 * cryptography is OpenSSL's, by way of `node:tls`.
 */
export interface Credentials {
  /** Changes whenever the files were read again: objects made from `serverOptions` are then out of date. */
  readonly version: number;
  /** For accepting connections. */
  serverOptions(): TlsServerOptions;
  /** For dialing one connection, in that role. */
  dialOptions(self: DialingSelf): ConnectionOptions;
  /**
   * The identity of the peer after a completed TLS handshake. Nothing may be read from the connection without
   * a proof.
   */
  proofOf(socket: TLSSocket, side: Side): Proof | AuthFault;
  /** A peer's claim in a failed handshake, for messages. */
  claimOf(socket: TLSSocket): string | undefined;
  /** The greatest role below a member's that they allow, for a participant that names none. */
  readonly participant: Exclude<Role, "member">;
  /** Ends the watch of the files. */
  close(): void;
}
