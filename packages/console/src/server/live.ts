import type { ServerResponse } from "node:http";
import type { LeaseView, LiveMessage } from "../record/messages.js";
import type { Dirty } from "../record/record.js";
import type { Observer } from "./observer.js";

/** Changes within this time are sent as one message. */
const batchMs = 100;
/** The most leases in the part for one page. The page asks for the next part with the last name. */
export const partMax = 10_000;
/** A page that has not read for this long is disconnected; the browser reconnects. */
const unreadMsMax = 30_000;
/** The longest time between messages, so that the page can detect a dead connection. */
const beatMs = 2_000;

export interface LivePart {
  /** Names with this prefix. */
  readonly prefix: string;
  /** Names after this one, sorted as text. */
  readonly after: string;
}

/** `Omit` that distributes over the kinds of messages. */
type Unsent<Message> = Message extends unknown ? Omit<Message, "nowMs"> : never;

/**
 * The stream of server-sent events for one page: first everything, then the changes. A page that reads slowly
 * gets fewer and larger messages, since changes are looked up when they can be sent.
 */
export class LiveStream {
  readonly #response: ServerResponse;
  readonly #observer: Observer;
  readonly #part: LivePart;
  readonly #dirty: Dirty;
  readonly #timer: NodeJS.Timeout;
  /** The names that the page shows: those sent first, and new ones within the part's range. */
  readonly #shown = new Set<string>();
  /** The last name of this part, if another part follows. */
  #last: string | undefined;
  #before = 0;
  #ground: unknown;
  #trouble: string | undefined;
  #sentMs = 0;
  /** When the page stopped reading, by the steady clock. */
  #fullSinceMs: number | undefined;

  constructor(response: ServerResponse, observer: Observer, part: LivePart, start: Unsent<LiveMessage>) {
    this.#response = response;
    this.#observer = observer;
    this.#part = part;
    this.#dirty = observer.record.read();
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.on("drain", () => {
      this.#fullSinceMs = undefined;
    });
    response.on("close", () => this.close());
    this.#send(start);
    this.#sendAll();
    this.#send({ type: "events", events: observer.record.eventsAfter(0) });
    this.#timer = setInterval(() => this.#sendChanges(), batchMs);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#observer.record.forget(this.#dirty);
    this.#response.end();
  }

  #sendAll(): void {
    const { record } = this.#observer;
    const { prefix, after } = this.#part;
    const names = record.names().filter((name) => name.startsWith(prefix));
    const rest = after === "" ? names : names.filter((name) => name > after);
    const shown = rest.slice(0, partMax);
    this.#before = names.length - rest.length;
    this.#last = rest.length > shown.length ? shown.at(-1) : undefined;
    this.#dirty.isTooMuch = false;
    this.#shown.clear();
    for (const name of shown) this.#shown.add(name);
    const leases = shown.flatMap((name) => record.get(name) ?? []);
    this.#send({ type: "all", leases, total: record.size, before: this.#before });
  }

  #isInPart(name: string): boolean {
    const { prefix, after } = this.#part;
    return name.startsWith(prefix) && name > after && (this.#last === undefined || name <= this.#last);
  }

  #sendChanges(): void {
    if (this.#fullSinceMs !== undefined) {
      if (performance.now() - this.#fullSinceMs > unreadMsMax) this.#response.destroy();
      return;
    }
    const { record, ground, trouble } = this.#observer;
    const held: LeaseView[] = [];
    const gone: string[] = [];
    const wasEmpty = this.#dirty.names.size === 0;
    if (this.#dirty.isTooMuch) this.#sendAll();
    for (const name of this.#dirty.names) {
      this.#dirty.ends.delete(name);
      if (!this.#isInPart(name)) continue;
      const lease = record.get(name);
      if (lease === undefined) {
        if (this.#shown.delete(name)) gone.push(name);
        continue;
      }
      // Keeps the part bounded. The page learns from `total` that there are others.
      if (!this.#shown.has(name) && this.#shown.size >= 2 * partMax) continue;
      this.#shown.add(name);
      held.push(lease);
    }
    this.#dirty.names.clear();
    if (!wasEmpty) this.#send({ type: "changes", held, gone, total: record.size });
    const ends = [...this.#dirty.ends].flatMap((name): [string, number][] => {
      const lease = this.#shown.has(name) ? record.get(name) : undefined;
      return lease === undefined ? [] : [[name, lease.endsMs]];
    });
    this.#dirty.ends.clear();
    if (ends.length > 0) this.#send({ type: "ends", ends });
    const events = record.eventsAfter(this.#dirty.events);
    this.#dirty.events = events.at(-1)?.number ?? this.#dirty.events;
    if (events.length > 0) this.#send({ type: "events", events });
    const isStale = trouble !== this.#trouble;
    if (ground !== undefined && ground !== this.#ground) this.#send({ type: "ground", ground });
    if (isStale || Date.now() - this.#sentMs > beatMs)
      this.#send({ type: "trouble", ...(trouble !== undefined && { text: trouble }) });
    this.#ground = ground;
    this.#trouble = trouble;
  }

  #send(message: Unsent<LiveMessage>): void {
    this.#sentMs = Date.now();
    const text = JSON.stringify({ nowMs: this.#sentMs, ...message });
    if (!this.#response.write(`data: ${text}\n\n`)) this.#fullSinceMs ??= performance.now();
  }
}
