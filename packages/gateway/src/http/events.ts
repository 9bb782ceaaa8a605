import type { ServerResponse } from "node:http";
import type { Charge } from "leasehold/common";
import { plain } from "../api/routes.js";
import type { Follower, NumberedChange } from "../watch/hub.js";

/** The most bytes written ahead of a client's reading. */
const aheadBytesMax = 64 * 1024;
/** A client that has not read for this long is disconnected. It reconnects with its last id. */
const unreadMsMax = 30_000;
/** Keep-alive: either side detects a dead connection, and no proxy closes it as idle. */
const beatMs = 10_000;

/** The frames of changes: each is serialized once for all watching clients. */
const frames = new WeakMap<NumberedChange, string>();

export interface StreamParts {
  readonly response: ServerResponse;
  readonly prefix: string;
  readonly isExact: boolean;
  maySee(resource: string): boolean;
  /** Grows with the changes that are queued for this client. */
  readonly charge: Charge;
}

/**
 * Changes as server-sent events, for one client. A client that reads slowly receives only the newest change
 * of each name, and delays no other client.
 */
export class EventStream implements Follower {
  readonly prefix: string;
  readonly isExact: boolean;
  readonly #parts: StreamParts;
  readonly #beat: NodeJS.Timeout;
  /** Leases held at the last reset that are not written yet. `#position` is the id that follows them. */
  #held: Iterator<NumberedChange> | undefined;
  #position = "";
  /** Queued changes by name, in the order of their ids. */
  #waiting = new Map<string, NumberedChange>();
  #isFull = false;
  #readMs = performance.now();

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.prefix = parts.prefix;
    this.isExact = parts.isExact;
    const { response, charge } = parts;
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.flushHeaders();
    response.on("drain", () => {
      this.#isFull = false;
      this.#readMs = performance.now();
      this.#flush();
    });
    this.#beat = setInterval(() => this.#look(), beatMs);
    response.once("close", () => {
      clearInterval(this.#beat);
      charge.end();
    });
  }

  reset(held: Iterable<NumberedChange>, position: string): void {
    this.#forget();
    this.#write("event: reset\ndata: {}\n\n");
    this.#held = held[Symbol.iterator]();
    this.#position = position;
    this.#flush();
  }

  report(numbered: NumberedChange): void {
    const { resource } = numbered.change;
    if (!this.#parts.maySee(resource)) return;
    if (!this.#isFull && this.#held === undefined) {
      this.#write(frameOf(numbered));
      return;
    }
    // Delete and set again, so that the newest change comes last: the order is that of the ids.
    if (this.#waiting.delete(resource) || this.#parts.charge.tryAdd(1)) this.#waiting.set(resource, numbered);
    else this.#parts.response.destroy();
  }

  #flush(): void {
    while (this.#held !== undefined && !this.#isFull) {
      const next = this.#held.next();
      if (next.done === true) {
        this.#held = undefined;
        // The leases above have no id, since they come in no order. At this point the client is up to date.
        this.#write(`id: ${this.#position}\n\n`);
      } else if (this.#parts.maySee(next.value.change.resource)) this.#write(bodyOf(next.value));
    }
    if (this.#held !== undefined) return;
    for (const [resource, numbered] of this.#waiting) {
      if (this.#isFull) return;
      this.#waiting.delete(resource);
      this.#parts.charge.tryAdd(-1);
      this.#write(frameOf(numbered));
    }
  }

  #forget(): void {
    this.#parts.charge.tryAdd(-this.#waiting.size);
    this.#waiting = new Map();
  }

  #look(): void {
    if (this.#isFull && performance.now() - this.#readMs > unreadMsMax) this.#parts.response.destroy();
    else if (!this.#isFull) this.#write(":\n\n");
  }

  #write(text: string): void {
    const { response } = this.#parts;
    if (response.destroyed) return;
    const wasDrained = response.write(text);
    // `drain` is emitted only after `write` has returned false.
    if (wasDrained || response.writableLength < aheadBytesMax) return;
    if (!this.#isFull) this.#readMs = performance.now();
    this.#isFull = true;
  }
}

function frameOf(numbered: NumberedChange): string {
  const known = frames.get(numbered);
  if (known !== undefined) return known;
  const frame = `id: ${numbered.id}\n${bodyOf(numbered)}`;
  frames.set(numbered, frame);
  return frame;
}

function bodyOf({ change: { state, ...more } }: NumberedChange): string {
  return `event: ${state}\ndata: ${JSON.stringify(plain({ state, ...more }))}\n\n`;
}
