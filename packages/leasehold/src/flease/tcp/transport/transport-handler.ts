import type { LeaseholdError } from "../../../lease/errors.js";
import type { Rejection } from "../wire/hello.js";
import type { ClockStamp } from "../wire/codec.js";
import type { Identity } from "../wire/identity.js";
import type { Link, LinkHandler } from "./link.js";

/**
 * What the transport tells its owner. Everything is called synchronously from the transport's own turn; none
 * of it may throw, and what it throws is not caught: it is a bug.
 */
export interface TransportHandler extends LinkHandler {
  /**
   * The handshake is done and messages may be sent. Set `link.handle` here. A new connection of a peer that
   * is still connected replaces the old one: `disconnected(old)` comes first. Not called for
   * `transport.loopback`.
   */
  connected(link: Link): void;
  /**
   * The link is gone for good; a dialed address is being tried again already. Not called by
   * `transport.close()`.
   */
  disconnected(link: Link, reason: string): void;
  /**
   * The peer at an address we dial refused us, or we refused it: `CLUSTER_MISMATCH`, `CONFIG_MISMATCH`,
   * `VERSION_MISMATCH`, `UNAUTHENTICATED`, `PERMISSION_DENIED`, or `UNREACHABLE` (it does not speak this
   * protocol, or takes nobody else). Said at every attempt; attempts go on, slowly.
   */
  refused(address: string, error: LeaseholdError): void;
  /**
   * An accepted connection was refused, by us or by its other side. `cause` is one of a few dozen stable
   * names, `text` one sentence; nothing in it is too long or has control characters.
   */
  repelled(address: string, cause: string, text: string): void;
  /**
   * A member refused us, as another process with our id is connected with it, or with another member. Said at
   * every attempt.
   */
  refusedAsDuplicate(memberId: string, text: string): void;
  /** We refused a process at this address because its id is that of a member to which this link leads. */
  duplicateRefused(link: Link, address: string): void;
  /** A dialed address could not be reached at all. Said at every attempt; attempts go on. */
  unreachable(address: string, reason: string): void;
  /** Asked when a peer's identity fits ours: `undefined` lets it in. */
  admit(peer: Identity): Rejection | undefined;
  /** What an accepting member tells a client of the cluster: JSON, at most 60 KiB. */
  clusterDocument(): string;
  /**
   * Fills in the clocks for a batch that leaves now. `monoMs` must come from the transport's own
   * `world.clock`.
   */
  stamp(into: ClockStamp): void;
  /**
   * An admin RPC of the peer (status, lists). What it returns, or resolves to, is sent as JSON; what it
   * throws, as an error.
   */
  answer(link: Link, method: string, params: unknown): unknown;
}
