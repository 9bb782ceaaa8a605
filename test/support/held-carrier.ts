import type { Carrier, Encoded, Status } from "../../packages/core/src/server/wire/rpc/call.js";
import { Metadata, ServerStream } from "../../packages/core/src/server/wire/rpc/call.js";

/** Records the messages of a call instead of sending them. A test decides when they are taken. */
export class HeldCarrier implements Carrier {
  readonly messages: Encoded[] = [];
  readonly ends: (Status | undefined)[] = [];
  /** True while the client takes no messages. */
  isStuck = false;
  readonly #stuck: (() => void)[] = [];

  answer(message: Encoded): void {
    this.messages.push(message);
    this.end(undefined);
  }

  message(message: Encoded, taken: () => void): void {
    this.messages.push(message);
    if (this.isStuck) this.#stuck.push(taken);
    else taken();
  }

  end(status: Status | undefined): void {
    this.ends.push(status);
  }

  cut(status: Status): void {
    this.end(status);
  }

  consumed(): void {
    // Requests arrive only when a test calls `ask`.
  }

  unstick(): void {
    this.isStuck = false;
    for (const taken of this.#stuck.splice(0)) taken();
  }

  readonly #asked: unknown[] = [];
  #isEnded = false;

  ask(stream: ServerStream, request: unknown): void {
    this.#asked.push(request);
    stream.flow();
  }

  /** The client ends its side of the stream. */
  askEnd(stream: ServerStream): void {
    this.#isEnded = true;
    stream.flow();
  }

  /** A stream on this carrier, whose answers may be any objects. */
  stream<Message>(seen: (message: Message) => void): ServerStream {
    const peer = { address: "c", commonName: "" };
    const metadata = new Metadata(new Map());
    const base = { metadata, peer, deadlineMs: Number.POSITIVE_INFINITY, carrier: this };
    const encode = (message: unknown) => {
      seen(message as Message);
      return new Uint8Array();
    };
    return new ServerStream(base, undefined, encode, {
      next: () => this.#asked.shift(),
      isEnded: () => this.#isEnded,
    });
  }
}
