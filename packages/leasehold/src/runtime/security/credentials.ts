import type { ConnectionOptions, TlsOptions as TlsServerOptions, TLSSocket } from "node:tls";
import type { AuthFault, Side } from "./auth-fault.js";
import type { Proof } from "./proof.js";
import type { Role } from "./roles.js";

/** A participant's claim in a TLS handshake without certificates. */
export interface DialingSelf {
  readonly role: Role;
  readonly cluster: string;
}

/**
 * The credentials of a participant, and what it requires of peers: certificates or a cluster key. All
 * cryptography is OpenSSL's, through `node:tls`.
 */
export interface Credentials {
  /**
   * Changes whenever the files have been read again. Objects made from earlier `serverOptions` are then
   * outdated.
   */
  readonly version: number;
  /** Options for accepting connections. */
  serverOptions(): TlsServerOptions;
  /** Options for dialing one connection in that role. */
  dialOptions(self: DialingSelf): ConnectionOptions;
  /**
   * The identity of the peer after a completed TLS handshake. Nothing may be read from the connection without
   * a proof.
   */
  proofOf(socket: TLSSocket, side: Side): Proof | AuthFault;
  /** The peer's claim in a failed handshake, for messages. */
  claimOf(socket: TLSSocket): string | undefined;
  /**
   * The most privileged role, other than member, that the credentials allow: for participants that specify no
   * role.
   */
  readonly participant: Exclude<Role, "member">;
  /** Stops watching the files. */
  close(): void;
}
