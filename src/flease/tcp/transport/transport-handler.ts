import type { LeaseholdError } from "../../../lease/errors.js";
import type { Message } from "../../protocol/message.js";
import type { Rejection } from "../wire/hello.js";
import type { Link } from "./link.js";
import type { Credentials } from "../security/credentials.js";

/** A member is an acceptor (and usually a proposer); a client is a proposer only; an observer may ask, and hold nothing. */
export type Role = "member" | "client" | "observer";

/** What one side of a connection says of itself before anything else (`docs/wire-protocol.md`, HELLO). */
export interface Identity {
  readonly role: Role;
  /** 1 to 128 bytes of UTF-8. Unique among members; clients may share one, their incarnations differ. */
  readonly nodeId: string;
  /** 32 hexadecimal digits: a hash of the key that was drawn for this proposer instance (`security/incarnation-key.ts`). */
  readonly incarnation: string;
  /** Name of the cluster, 1 to 128 bytes of UTF-8. A client that does not know it yet says `""`. */
  readonly cluster: string;
  /** 16 bytes as 32 hexadecimal digits. A client that does not know it yet says `""` (all zero on the wire). */
  readonly configHash: string;
  /** Number of the membership view. A client that does not know it yet says 0. */
  readonly view: number;
  /** Version of the function that maps a resource to its cell; 0 as long as every resource has all members. */
  readonly cellFunction: number;
}

/** What a participant says of itself. Its incarnation is not among that: it follows from the key that it proves to have. */
export type Claims = Omit<Identity, "incarnation">;

/** The sender's clocks when a batch left. Reused: copy what is to be kept. */
export interface ClockStamp {
  /** `world.clock.monotonicMs()` of the sender. */
  monoMs: number;
  /** The sender's `lo` and `hi` (section 3.2 of the protocol), ms. */
  loMs: number;
  hiMs: number;
}

/**
 * What the peer said of the last batch that it had received from us when it sent this one. Reused: copy what is to
 * be kept.
 */
export interface Echo {
  /** Our steady clock when that batch left, ms; counts only when `loMs` is not 0. */
  monoMs: number;
  /** Our `lo` when that batch left, ms; 0 when the peer had not received any batch. */
  loMs: number;
  /** How long the peer kept the echo before it sent this batch, by its steady clock, ms. */
  heldMs: number;
  /** The round trip without the time at the peer, ms, at least 0; -1 when there is no echo. */
  roundTripMs: number;
}

/**
 * What the transport tells its owner. Everything is called synchronously from the transport's own turn; none of it
 * may throw, and what it throws is not caught: it is a bug.
 */
export interface TransportHandler {
  /**
   * The handshake is done and messages may be sent. Set `link.handle` here. A new connection of a peer that is
   * still connected replaces the old one: `disconnected(old)` comes first. Not called for `transport.loopback`.
   */
  connected(link: Link): void;
  /** The link is gone for good; a dialed address is being tried again already. Not called by `transport.close()`. */
  disconnected(link: Link, reason: string): void;
  /**
   * The peer at an address we dial refused us, or we refused it: `CLUSTER_MISMATCH`, `CONFIG_MISMATCH`,
   * `VERSION_MISMATCH`, `UNAUTHENTICATED`, `PERMISSION_DENIED`, or `UNREACHABLE` (it does not speak this protocol, or
   * takes nobody else). Said at every attempt; attempts go on, slowly.
   */
  refused(address: string, error: LeaseholdError): void;
  /**
   * An accepted connection was refused, by us or by its other side. `cause` is one of a few dozen stable names, `text`
   * one sentence; nothing in it is too long or has control characters.
   */
  repelled(address: string, cause: string, text: string): void;
  /** A member refused us, as another process with our id is connected with it, or with another member. Said at every attempt. */
  twin(memberId: string, text: string): void;
  /** We refused a process at this address because its id is that of a member to which this link leads. */
  rival(link: Link, address: string): void;
  /** A dialed address could not be reached at all. Said at every attempt; attempts go on. */
  unreachable(address: string, reason: string): void;
  /** Asked when a peer's identity fits ours: `undefined` lets it in. */
  admit(peer: Identity): Rejection | undefined;
  /** What an accepting member tells a client of the cluster: JSON, at most 32 KiB. */
  clusterDocument(): string;
  /** Fills in the clocks for a batch that leaves now. `monoMs` must come from the transport's own `world.clock`. */
  stamp(into: ClockStamp): void;
  /**
   * Bytes have been received from this link, and none of their messages has been handled: the place to read the
   * clock once for all of them.
   */
  chunk(link: Link): void;
  /** Once for each batch, before its messages. Both records are reused. */
  stamped(link: Link, stamp: ClockStamp, echo: Echo): void;
  /**
   * One message. The record is reused: it counts during this call only. In requests `owner` is `link.owner`.
   * Clients are handed replies only, and what clients send is requests only: anything else closed their connection.
   */
  message(link: Link, message: Message): void;
  /** All messages of the chunk have been handled. Also called when the chunk ended in a refused frame. */
  chunkEnd(link: Link): void;
  /** A side call of the peer (status, lists). What it returns, or resolves to, is sent as JSON; what it throws, as an error. */
  answer(link: Link, method: string, params: unknown): unknown;
}

/** Times and bounds of a transport. Every one has a default, in `transport-options.ts`. */
export interface TransportOptions {
  /** An idle link sends an empty batch this often, ms. */
  readonly heartbeatMs: number;
  /** A link on which nothing arrived for so many heartbeats is closed. */
  readonly silentHeartbeatsMax: number;
  /** From the connection attempt, or the accept, to the end of the handshake, ms. */
  readonly handshakeTimeoutMs: number;
  /** Accepted connections whose handshake is not done; for a further one the oldest is closed. */
  readonly handshakesMax: number;
  /** Clients connected at the same time; further ones are refused, and some of one account before the last place is taken. */
  readonly clientsMax: number;
  /** Bytes waiting for one peer, in the socket and before it; further messages to it are dropped. */
  readonly linkBytesMax: number;
  /** The first reconnection waits up to this long, ms; each failure doubles it, up to `dialBackoffMsMax`. */
  readonly dialBackoffMs: number;
  readonly dialBackoffMsMax: number;
  /** After refusals the next attempt waits up to this long, ms; after the first of them much shorter. */
  readonly refusedRetryMs: number;
  /** Of two members the one with the greater id dials only when it has not been connected for so long, ms, up to twice that. */
  readonly standByMs: number;
  /** Listen beyond loopback without encryption or authentication. */
  readonly insecure: boolean;
  /** Every connection is TLS with these; `undefined`: plain TCP. They are closed by whoever made them. */
  readonly credentials: Credentials | undefined;
}
