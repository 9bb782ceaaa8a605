import type { Carrier, Encoded, Status } from "../../packages/core/src/server/wire/rpc/call.js";
import { Metadata, ServerStream } from "../../packages/core/src/server/wire/rpc/call.js";

/** Carries a call nowhere: what it was given is seen here, and is taken when a test says so. */
export class HeldCarrier implements Carrier {
  readonly messages: Encoded[] = [];
  readonly ends: (Status | undefined)[] = [];
  /** The client takes nothing. */
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
    // Nothing comes by itself.
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

  /** The client says no more. */
  askEnd(stream: ServerStream): void {
    this.#isEnded = true;
    stream.flow();
  }

  /** A stream on it, whose answers are any objects. */
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
