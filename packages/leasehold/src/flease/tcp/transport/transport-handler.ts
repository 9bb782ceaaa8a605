import type { LeaseholdError } from "../../../lease/errors.js";
import type { Rejection } from "../wire/hello.js";
import type { Identity } from "../wire/identity.js";
import type { Link, MessageHandler } from "./link.js";

/**
 * Receives a transport's events. All calls are synchronous, from the transport's own turn. None may throw,
 * except `calls.answer`: an exception is a bug and is not caught.
 */
export interface TransportHandler {
  readonly connections: ConnectionHandler;
  readonly messages: MessageHandler;
  readonly calls: CallHandler;
}

/** Admits peers, and receives the beginnings and ends of connections. */
export interface ConnectionHandler {
  /**
   * The handshake is done and messages may be sent. Set `link.handle` here. A new connection of a connected
   * peer replaces the old one: `disconnected(old)` comes first. Not called for `transport.loopback`.
   */
  connected(link: Link): void;
  /** The link is closed; a dialed address is already being retried. Not called by `transport.close()`. */
  disconnected(link: Link, reason: string): void;
  /**
   * The peer at a dialed address refused us, or we refused it: `CLUSTER_MISMATCH`, `CONFIG_MISMATCH`,
   * `VERSION_MISMATCH`, `UNAUTHENTICATED`, `PERMISSION_DENIED`, or `UNREACHABLE` (another protocol, or no
   * room). Called at every attempt; attempts continue, slowly.
   */
  refused(address: string, error: LeaseholdError): void;
  /**
   * Either side refused an accepted connection. `cause` is one of a few dozen stable names, `text` one
   * sentence of bounded length without control characters.
   */
  repelled(address: string, cause: string, text: string, isCredential: boolean): void;
  /**
   * A member refused us because another process with our id is connected with it or with another member.
   * Called at every attempt.
   */
  refusedAsDuplicate(memberId: string, text: string): void;
  /**
   * We refused a process at this address because its id is that of the member at the other end of this
   * link.
   */
  duplicateRefused(link: Link, address: string): void;
  /** A dialed address could not be reached. Called at every attempt; attempts continue. */
  unreachable(address: string, reason: string): void;
  /** Called when a peer's identity matches ours: `undefined` admits it. */
  admit(peer: Identity): Rejection | undefined;
  /** The description of the cluster that an accepting member sends to a client: JSON, at most 60 KiB. */
  clusterDocument(): string;
}

/** Answers peers' calls. */
export interface CallHandler {
  /**
   * Answers an admin RPC of the peer (status, lists). The result, also of a promise, is sent as JSON; an
   * exception as an error.
   */
  answer(link: Link, method: string, params: unknown): unknown;
}
