import { isRecord } from "../../../common/json.js";
import type { FleasePeer } from "../../peer.js";
import type { Reading } from "../../protocol/clock.js";
import type { Link } from "../transport/link.js";
import type { Transport } from "../transport/transport.js";
import { writeViewOffer } from "../../views/document.js";

/** Time for another participant to answer an offer, or to take a view, ms. */
const publishTimeoutMs = 1_000;

/** Participants that have not confirmed the present view are offered it this often, ms. */
const offerEveryMs = 500;

/** Views that are sent at one time take this much memory at most; others are offered it again. */
const bytesUnderWayMax = 16 * 1024 * 1024;

export interface PublisherHost {
  readonly role: string;
  readonly peer: FleasePeer;
  readonly transport: Pick<Transport, "call" | "links" | "loopback">;
}

/** What a participant has confirmed: the view it is in, and how many it knows to have left the one before. */
interface Confirmed {
  readonly stamp: number;
  readonly settled: number;
}

/**
 * Sends a member's view to all that are connected. A view of 300 members has up to 170 KB, and each of them
 * would send it to everybody: so each offers its number and stamp, and sends the view to those that ask for
 * it. An offer also carries which members have left the view before, which changes while members are in a
 * joint view. What a participant has not confirmed is offered again.
 */
export class ViewPublisher {
  readonly #host: PublisherHost;
  readonly #document: () => object;
  readonly #confirmed = new WeakMap<Link, Confirmed>();
  readonly #offering = new WeakSet<Link>();
  #bytesUnderWay = 0;
  #offeredMono = -Infinity;

  /** @param document the whole view, as JSON */
  constructor(host: PublisherHost, document: () => object) {
    this.#host = host;
    this.#document = document;
  }

  /** To be called several times a second. */
  maintain(now: Reading): void {
    if (this.#host.role !== "member" || now.mono - this.#offeredMono < offerEveryMs) return;
    this.#offeredMono = now.mono;
    const { view, settled } = this.#host.peer.views.note();
    for (const link of this.#host.transport.links) {
      const { stamp, settled: heard } = this.#confirmed.get(link) ?? { stamp: 0, settled: 0 };
      if (stamp !== view.stamp || (link.role === "member" && heard < settled.size)) this.offer(link);
    }
  }

  /** The view has changed. */
  offerAll(): void {
    for (const link of this.#host.transport.links) this.offer(link);
  }

  offer(link: Link): void {
    const { role, transport } = this.#host;
    if (role === "member" && link !== transport.loopback && !this.#offering.has(link)) void this.#offer(link);
  }

  async #offer(link: Link): Promise<void> {
    const note = this.#host.peer.views.note();
    this.#offering.add(link);
    try {
      const answer = await this.#call(link, writeViewOffer(note));
      const isWanted = isRecord(answer) && answer["wants"] === true;
      const heard = isWanted ? await this.#send(link) : answer;
      if (isRecord(heard) && typeof heard["stamp"] === "number")
        this.#confirmed.set(link, { stamp: heard["stamp"], settled: note.settled.size });
    } catch {
      // It is offered again as long as it is connected.
    } finally {
      this.#offering.delete(link);
    }
    if (link.open && this.#host.peer.views.view.stamp !== note.view.stamp) this.offer(link);
  }

  async #send(link: Link): Promise<unknown> {
    const document = this.#document();
    const bytes = JSON.stringify(document).length;
    if (this.#bytesUnderWay + bytes > bytesUnderWayMax) return undefined;
    this.#bytesUnderWay += bytes;
    try {
      return await this.#call(link, document);
    } finally {
      this.#bytesUnderWay -= bytes;
    }
  }

  #call(link: Link, params: object): Promise<unknown> {
    return this.#host.transport.call(link, "view", params, publishTimeoutMs);
  }
}
