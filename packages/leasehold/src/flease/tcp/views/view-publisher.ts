import { isRecord } from "../../../common/json.js";
import type { FleasePeer } from "../../peer.js";
import type { Reading } from "../../protocol/clock.js";
import type { Link } from "../transport/link.js";
import type { Transport } from "../transport/transport.js";
import { writeViewOffer } from "../../views/document.js";
import type { ViewNote } from "../../views/view.js";

/** Timeout for another participant to answer an offer, or to accept a view, ms. */
const publishTimeoutMs = 1_000;

/** Interval at which unconfirmed participants are offered the view again, ms. */
const offerEveryMs = 500;

/** Upper bound of memory for views in flight; other participants are offered it again. */
const bytesUnderWayMax = 16 * 1024 * 1024;

export interface PublisherHost {
  readonly role: string;
  readonly peer: FleasePeer;
  readonly transport: Pick<Transport, "call" | "links" | "loopback">;
}

/** A participant's confirmation: its view, and how many members it knows to have left the previous one. */
interface Confirmed {
  readonly stamp: number;
  readonly settled: number;
}

/**
 * Publishes a member's view to all connected participants. A view of 300 members has up to 170 KB, and each
 * member would send it to everyone: so members offer number and stamp, and send the view on request. An offer
 * also lists the members that have left the previous view; the list grows while members are in a joint view.
 * Unconfirmed offers are repeated.
 */
export class ViewPublisher {
  readonly #host: PublisherHost;
  readonly #document: () => object;
  readonly #confirmed = new WeakMap<Link, Confirmed>();
  readonly #offering = new WeakSet<Link>();
  #bytesUnderWay = 0;
  /** Size of the view that was sent last, bytes. */
  #bytesSent = 0;
  #offeredMono = -Infinity;

  /** @param document the whole view, as JSON */
  constructor(host: PublisherHost, document: () => object) {
    this.#host = host;
    this.#document = document;
  }

  /** Call several times a second. */
  maintain(now: Reading): void {
    if (this.#host.role !== "member" || now.mono - this.#offeredMono < offerEveryMs) return;
    this.#offeredMono = now.mono;
    const { view, settled } = this.#host.peer.views.note();
    this.#offerTo(
      [...this.#host.transport.links].filter((link) => {
        const { stamp, settled: heard } = this.#confirmed.get(link) ?? { stamp: 0, settled: 0 };
        return stamp !== view.stamp || (link.role === "member" && heard < settled.size);
      }),
    );
  }

  /** Call when the view has changed. */
  offerAll(): void {
    this.#offerTo(this.#host.transport.links);
  }

  offer(link: Link): void {
    this.#offerTo([link]);
  }

  #offerTo(links: Iterable<Link>): void {
    const { role, peer, transport } = this.#host;
    if (role !== "member") return;
    const note = peer.views.note();
    // Written once: a list of 300 members for each of thousands of clients would take seconds.
    const offer = writeViewOffer(note);
    for (const link of links)
      if (link !== transport.loopback && !this.#offering.has(link)) void this.#offer(link, note, offer);
  }

  async #offer(link: Link, note: ViewNote, offer: object): Promise<void> {
    this.#offering.add(link);
    try {
      const answer = await this.#call(link, offer);
      const isWanted = isRecord(answer) && answer["wants"] === true;
      const heard = isWanted ? await this.#send(link) : answer;
      if (isRecord(heard) && typeof heard["stamp"] === "number")
        this.#confirmed.set(link, { stamp: heard["stamp"], settled: note.settled.size });
    } catch {
      // Repeated while it is connected.
    } finally {
      this.#offering.delete(link);
    }
    if (link.open && this.#host.peer.views.view.stamp !== note.view.stamp) this.offer(link);
  }

  async #send(link: Link): Promise<unknown> {
    // If many clients ask, most find no room: the view is not encoded for each of them.
    if (this.#bytesUnderWay > 0 && this.#bytesUnderWay + this.#bytesSent > bytesUnderWayMax) return undefined;
    const document = this.#document();
    const bytes = JSON.stringify(document).length;
    this.#bytesSent = bytes;
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
