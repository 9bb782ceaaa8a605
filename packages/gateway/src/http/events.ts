import type { ServerResponse } from "node:http";
import { plain } from "../api/routes.js";
import type { Follower, NumberedChange } from "../watch/hub.js";

/** A client that does not read is cut off when so much waits for it; it comes back with the last id. */
const unreadBytesMax = 1024 * 1024;
/** So that either side notices when the connection is dead, and no proxy takes it for idle. */
const beatMs = 10_000;

/** The frames of changes: each is written once for all that watch. */
const frames = new WeakMap<NumberedChange, string>();

/** Changes as server-sent events, for one client. */
export class EventStream implements Follower {
  readonly prefix: string;
  readonly isExact: boolean;
  readonly #response: ServerResponse;
  readonly #maySee: (resource: string) => boolean;
  readonly #beat: NodeJS.Timeout;

  constructor(
    response: ServerResponse,
    prefix: string,
    isExact: boolean,
    maySee: (resource: string) => boolean,
  ) {
    this.prefix = prefix;
    this.isExact = isExact;
    this.#response = response;
    this.#maySee = maySee;
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.flushHeaders();
    this.#beat = setInterval(() => this.#write(":\n\n"), beatMs);
    response.once("close", () => clearInterval(this.#beat));
  }

  reset(): void {
    this.#write("event: reset\ndata: {}\n\n");
  }

  tell(numbered: NumberedChange): void {
    if (this.#maySee(numbered.change.resource)) this.#write(frameOf(numbered));
  }

  #write(text: string): void {
    if (this.#response.destroyed) return;
    this.#response.write(text);
    if (this.#response.writableLength > unreadBytesMax) this.#response.destroy();
  }
}

function frameOf(numbered: NumberedChange): string {
  const known = frames.get(numbered);
  if (known !== undefined) return known;
  const { id, change } = numbered;
  const { state, ...more } = change;
  const frame = `id: ${id}\nevent: ${state}\ndata: ${JSON.stringify(plain({ state, ...more }))}\n\n`;
  frames.set(numbered, frame);
  return frame;
}
