import type { TransportOptions } from "./transport-handler.js";

export const transportDefaults: TransportOptions = {
  /** Small enough to notice a dead connection in seconds, large enough that a thousand idle clients cost nothing. */
  heartbeatMs: 1000,
  /** Loss of a packet or two, or a long garbage collection, must not look like a dead peer. */
  silentHeartbeatsMax: 5,
  handshakeTimeoutMs: 5000,
  /** More than that at a time is somebody who knocks and says nothing. */
  handshakesMax: 256,
  /** A file descriptor and some 10 KiB each. */
  clientsMax: 10_000,
  /** Seconds of traffic at full load; whoever is further behind is better served by fresh messages. */
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
