import type { FleasePeer } from "../peer.js";
import { isRequest } from "../protocol/message.js";
import type { Message } from "../protocol/message.js";
import type { FleaseRunner } from "../runner.js";
import type { Membership } from "./membership.js";
import type { Link, MessageHandler } from "./transport/link.js";
import { firstClientHandle } from "./unplaced-links.js";
import type { ClockStamp, Echo } from "./wire/codec.js";

/** The participant, as seen by its messages. */
export interface MessagesHost {
  readonly peer: FleasePeer;
  readonly runner: FleaseRunner;
  readonly membership: Membership;
}

/**
 * Passes arrived messages to the peer, and its replies to their links. Messages with impossible clocks don't
 * count, and requests aren't answered while another process may be this member.
 */
export class PeerMessages implements MessageHandler {
  readonly #node: MessagesHost;
  /** Links whose last batch contradicted our clock. */
  readonly #distrusted = new Set<Link>();
  /** Whether requests in the present chunk are answered. */
  #answersRequests = false;

  constructor(node: MessagesHost) {
    this.#node = node;
  }

  stamp(into: ClockStamp): void {
    const now = this.#node.runner.now();
    into.monoMs = now.mono;
    into.loMs = now.lo;
    into.hiMs = now.hi;
  }

  chunk(): void {
    const { membership, runner } = this.#node;
    this.#answersRequests = membership.duplicates.votes(runner.arrived().mono);
  }

  stamped(link: Link, stamp: ClockStamp, echo: Echo): void {
    const { membership, peer, runner } = this.#node;
    if (link.handle < firstClientHandle) {
      const now = runner.reading;
      membership.echoed(link, echo, now.mono);
      if (echo.loMs !== 0) {
        const elapsedMs = Math.max(0, now.mono - echo.monoMs - echo.heldMs);
        peer.skew.measure(link.handle, stamp.loMs, stamp.hiMs, elapsedMs, now);
      }
    }
    if (runner.believes(link.handle, stamp.loMs, stamp.hiMs, echo.loMs)) this.#distrusted.delete(link);
    else this.#distrusted.add(link);
  }

  message(link: Link, message: Message): void {
    // Two peers whose clocks contradict each other do not count for each other's quorums (3.10).
    if (this.#distrusted.has(link)) return;
    if (!this.#answersRequests && isRequest(message.kind)) return;
    const reply = this.#node.runner.receive(link.handle, message);
    if (reply !== undefined) link.send(reply);
  }

  chunkEnd(): void {
    this.#node.runner.poke();
  }

  disconnected(link: Link): void {
    this.#distrusted.delete(link);
  }

  /** Forgets all links: the peer begins as another incarnation. */
  restarted(): void {
    this.#distrusted.clear();
  }
}
