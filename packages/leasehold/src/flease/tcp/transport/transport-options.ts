import type { Credentials } from "../../../runtime/security/credentials.js";
import { type ProtocolVersions, protocolVersions } from "../wire/hello.js";

/** Times and bounds of a transport, all with defaults. */
export interface TransportOptions {
  /** An idle link sends an empty batch this often, ms. */
  readonly heartbeatMs: number;
  /** A link that is silent for this many heartbeats is closed. */
  readonly silentHeartbeatsMax: number;
  /** From the connection attempt, or the accept, to the end of the handshake, ms. */
  readonly handshakeTimeoutMs: number;
  /** Maximum number of accepted connections in their handshake; a further one closes the oldest. */
  readonly handshakesMax: number;
  /**
   * Concurrent clients. Further ones are refused, and those of an account with a large share even earlier.
   */
  readonly clientsMax: number;
  /** Bytes queued for one peer, in the socket and before it; further messages to it are dropped. */
  readonly linkBytesMax: number;
  /** Upper bound of the first reconnect delay, ms; doubles with each failure up to `dialBackoffMsMax`. */
  readonly dialBackoffMs: number;
  readonly dialBackoffMsMax: number;
  /** Upper bound of the delay after refusals, ms; the first is much shorter. */
  readonly refusedRetryMs: number;
  /**
   * If both sides are members, the one with the greater id dials only after this long without a connection,
   * or up to twice this long, ms.
   */
  readonly standByMs: number;
  /** Listen beyond loopback without encryption or authentication. */
  readonly insecure: boolean;
  /** TLS for every connection, with these; `undefined`: plain TCP. The transport does not close them. */
  readonly credentials: Credentials | undefined;
  /** Values other than this build's are used only in tests. */
  readonly versions: ProtocolVersions;
}

export const transportDefaults: TransportOptions = {
  /**
   * Small enough to notice a dead connection in seconds, large enough that a thousand idle clients cost
   * nothing.
   */
  heartbeatMs: 1000,
  /** A lost packet or two, or a long garbage collection, must not look like a dead peer. */
  silentHeartbeatsMax: 5,
  handshakeTimeoutMs: 5000,
  /** Beyond this number most would be connections that never complete a handshake. */
  handshakesMax: 256,
  /** Each costs a file descriptor and about 10 KiB. */
  clientsMax: 10_000,
  /** Seconds of traffic at full load. Older messages would arrive after their senders have given up. */
  linkBytesMax: 4 * 1024 * 1024,
  dialBackoffMs: 50,
  /** A restarted member must be reached well within its recovery wait. */
  dialBackoffMsMax: 2000,
  refusedRetryMs: 5000,
  /** The other side dials within `dialBackoffMsMax` if it can. */
  standByMs: 2500,
  insecure: false,
  credentials: undefined,
  versions: protocolVersions,
};
