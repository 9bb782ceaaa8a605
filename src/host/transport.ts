import type { Message } from "../flease/message.js";
import type { World } from "../lease/ports.js";
import type { Link } from "./link.js";
import type { Identity, TransportHandler, TransportOptions } from "./transport-handler.js";

/**
 * TCP between one participant and its peers: one connection for each pair, all that a turn of the event loop
 * produced sent as one write for each peer. An open transport keeps its process alive; `close` ends that.
 */
export class Transport {
  /** What was refused, dropped and counted, by stable names (`docs/wire-protocol.md`, Counters). */
  readonly counters: Record<string, number> = {};
  /** A member's link to itself: the same codec without a socket. `undefined` for clients. */
  readonly loopback: Link | undefined = undefined;

  constructor(
    identity: Identity,
    world: World,
    handler: TransportHandler,
    options: Partial<TransportOptions> = {},
  ) {
    throw new Error(
      `to be written ${identity.nodeId} ${String(world)} ${String(handler)} ${String(options)}`,
    );
  }

  get identity(): Identity {
    throw new Error("to be written");
  }

  /** Every link whose handshake is done, without the loopback. */
  get links(): Iterable<Link> {
    throw new Error("to be written");
  }

  /** A client has learnt which cluster it is in: later handshakes say so and insist on it. */
  adopt(known: Pick<Identity, "cluster" | "configHash" | "view" | "cellFunction">): void {
    throw new Error(`to be written ${known.cluster}`);
  }

  /**
   * Accepts connections. Resolves with the address it really listens on, `host:port`.
   *
   * @throws LeaseholdError `INVALID_CONFIG` beyond loopback without `insecure`, or when the address cannot be had.
   */
  listen(address: string): Promise<string> {
    throw new Error(`to be written ${address}`);
  }

  /**
   * Keeps a connection to an address until `undial` or `close`. Of two members only the one with the smaller id
   * dials: with a `peerId` smaller than its own, a member does nothing here and waits to be dialed. A peer that
   * answers under another id than `peerId` is refused. Idempotent.
   */
  dial(address: string, peerId?: string): void {
    throw new Error(`to be written ${address} ${peerId}`);
  }

  /** Ends the connection to an address and the attempts to reach it. */
  undial(address: string): void {
    throw new Error(`to be written ${address}`);
  }

  /** Appends to the link's batch, which leaves at the end of this turn. Never throws; what has no room is dropped and counted. */
  send(link: Link, message: Message): void {
    throw new Error(`to be written ${link.owner} ${message.kind}`);
  }

  /**
   * Asks a peer something beside the protocol.
   *
   * @throws LeaseholdError `UNREACHABLE` (no answer in time, the link closed, too many calls), `CLOSED`, or what the
   * peer's handler threw.
   */
  call(link: Link, method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    throw new Error(`to be written ${link.owner} ${method} ${String(params)} ${timeoutMs}`);
  }

  /** Sends what is waiting, ends every link and leaves no handle open. Idempotent. */
  close(): Promise<void> {
    throw new Error("to be written");
  }
}
