import type { Credentials } from "../../../runtime/security/credentials.js";

/** Times and bounds of a transport. Every one has a default. */
export interface TransportOptions {
  /** An idle link sends an empty batch this often, ms. */
  readonly heartbeatMs: number;
  /** A link on which nothing arrived for so many heartbeats is closed. */
  readonly silentHeartbeatsMax: number;
  /** From the connection attempt, or the accept, to the end of the handshake, ms. */
  readonly handshakeTimeoutMs: number;
  /** Accepted connections whose handshake is not done; for a further one the oldest is closed. */
  readonly handshakesMax: number;
  /**
   * Clients connected at the same time; further ones are refused, and some of one account before the last
   * place is taken.
   */
  readonly clientsMax: number;
  /** Bytes waiting for one peer, in the socket and before it; further messages to it are dropped. */
  readonly linkBytesMax: number;
  /** The first reconnection waits up to this long, ms; each failure doubles it, up to `dialBackoffMsMax`. */
  readonly dialBackoffMs: number;
  readonly dialBackoffMsMax: number;
  /** After refusals the next attempt waits up to this long, ms; after the first of them much shorter. */
  readonly refusedRetryMs: number;
  /**
   * Of two members the one with the greater id dials only when it has not been connected for so long, ms, up
   * to twice that.
   */
  readonly standByMs: number;
  /** Listen beyond loopback without encryption or authentication. */
  readonly insecure: boolean;
  /** Every connection is TLS with these; `undefined`: plain TCP. The transport does not close them. */
  readonly credentials: Credentials | undefined;
}

export const transportDefaults: TransportOptions = {
  /**
   * Small enough to notice a dead connection in seconds, large enough that a thousand idle clients cost
   * nothing.
   */
  heartbeatMs: 1000,
  /** Loss of a packet or two, or a long garbage collection, must not look like a dead peer. */
  silentHeartbeatsMax: 5,
  handshakeTimeoutMs: 5000,
  /** More than that at a time is somebody who knocks and says nothing. */
  handshakesMax: 256,
  /** A file descriptor and some 10 KiB each. */
  clientsMax: 10_000,
  /** Seconds of traffic at full load. Older messages would arrive after their senders have given up. */
  linkBytesMax: 4 * 1024 * 1024,
  dialBackoffMs: 50,
  /** A member that comes back must be found well within its recovery wait. */
  dialBackoffMsMax: 2000,
  refusedRetryMs: 5000,
  /** The other one dials within `dialBackoffMsMax` if it can. */
  standByMs: 2500,
  insecure: false,
  credentials: undefined,
};
