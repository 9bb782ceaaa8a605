import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FairShares } from "../../../common/fair-shares.js";
import { addressOf } from "../common/address-of.js";
import { KeptBytes } from "./kept-bytes.js";

/** Requests of one connection that wait for the one before them. */
const waitingMax = 64;

/** Of a request, beside its head and content: measured, and rounded up. */
const requestBytes = 16 * 1024;

/** A request whose turn it is. */
export interface HttpCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Socket;
  /** No two connections at a time have the same. */
  readonly client: string;
  /** Aborted when its client is gone. */
  readonly gone: AbortSignal;
  readonly kept: KeptBytes;
}

/** What is done with requests. */
export interface Answering {
  /** Resolves when its client has taken the answer, or is gone. */
  answer(call: HttpCall): Promise<void>;
  /** The same, where there is no room for it. */
  refuse(call: HttpCall): Promise<void>;
}

/**
 * Requests of one connection are answered one after the other, as by Go's servers: HTTP/1.1 has their answers
 * in their order, and those of others would have to be kept meanwhile. Node tells of each as soon as its head
 * is there, and of those that wait not even that their client is gone.
 */
export class OneByOne {
  readonly #shares: FairShares<string>;
  readonly #answering: Answering;
  readonly #lines = new WeakMap<Socket, Line>();

  /** @param shares of what is kept of requests */
  constructor(shares: FairShares<string>, answering: Answering) {
    this.#shares = shares;
    this.#answering = answering;
  }

  take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    let line = this.#lines.get(socket);
    if (line === undefined) this.#lines.set(socket, (line = new Line(socket, this.#shares, this.#answering)));
    line.take(request, response);
  }
}

/** The requests of one connection. */
class Line {
  readonly #socket: Socket;
  readonly #client: string;
  readonly #shares: FairShares<string>;
  readonly #answering: Answering;
  readonly #waiting: (() => Promise<void>)[] = [];
  readonly #open = new Set<{ readonly gone: AbortController; readonly kept: KeptBytes }>();
  #isBusy = false;

  constructor(socket: Socket, shares: FairShares<string>, answering: Answering) {
    this.#socket = socket;
    this.#client = addressOf(socket);
    this.#shares = shares;
    this.#answering = answering;
    socket.once("close", () => {
      this.#waiting.length = 0;
      for (const { gone, kept } of this.#open) {
        gone.abort(new Error("the client is gone"));
        kept.end();
      }
    });
  }

  take(request: IncomingMessage, response: ServerResponse): void {
    // What was in one piece with what has ended the connection still comes.
    if (this.#socket.destroyed) return;
    const kept = new KeptBytes(this.#shares, this.#client);
    const hasRoom = hasRoomFor(kept, request);
    if (this.#isBusy && (!hasRoom || this.#waiting.length === waitingMax)) {
      kept.end();
      this.#socket.destroy();
      return;
    }
    const gone = new AbortController();
    const open = { gone, kept };
    this.#open.add(open);
    const [client, socket] = [this.#client, this.#socket];
    const call: HttpCall = { request, response, socket, client, gone: gone.signal, kept };
    this.#waiting.push(async () => {
      await (hasRoom ? this.#answering.answer(call) : this.#answering.refuse(call));
      kept.end();
      this.#open.delete(open);
    });
    if (!this.#isBusy) void this.#answerAll();
  }

  async #answerAll(): Promise<void> {
    this.#isBusy = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        // Answers may be long in coming, and each of what a client does has a time of its own.
        this.#socket.setTimeout(0);
        await next();
      }
    } catch {
      // A mistake of ours ends this connection, and nothing else.
      this.#socket.destroy();
    }
    this.#isBusy = false;
  }
}

function hasRoomFor(kept: KeptBytes, { rawHeaders, url = "" }: IncomingMessage): boolean {
  let bytes = requestBytes + url.length;
  for (const field of rawHeaders) bytes += field.length;
  try {
    kept.part()(bytes);
    return true;
  } catch {
    return false;
  }
}
