import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Charge, type Room } from "leasehold/common";
import { addressOf } from "../../accounts/address-of.js";

/** Bound of requests on one connection that wait for earlier ones. */
const waitingMax = 64;

/** Memory of a request in addition to its head and content: measured, and rounded up. */
const requestBytes = 16 * 1024;

/** A request whose turn has come. */
export interface HttpCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Socket;
  /** Unique among present connections. */
  readonly client: string;
  /** Aborts when the client is gone. */
  readonly gone: AbortSignal;
  /** The charge for the request's bytes. */
  readonly charge: Charge;
}

/** Handles requests. */
export interface Answering {
  /** Resolves when the client has read the answer, or is gone. */
  answer(call: HttpCall): Promise<void>;
  /** The same for a request for which there is no room. */
  refuse(call: HttpCall): Promise<void>;
}

/**
 * Answers the requests of one connection one after the other, as Go's servers do. HTTP/1.1 sends answers in
 * order, and concurrent ones would have to be buffered. Node announces each request when its head has
 * arrived, but does not report a disconnect while a request waits.
 */
export class OneByOne {
  readonly #room: Room;
  readonly #answering: Answering;
  readonly #requestMs: number;
  readonly #lines = new WeakMap<Duplex, Line>();

  /**
   * @param room bytes of requests; connections share it
   * @param requestMs timeout of a waiting request after its head. Until its turn its content is not read;
   *   Node therefore reads no further, and would not notice a disconnect
   */
  constructor(room: Room, answering: Answering, requestMs: number) {
    this.#room = room;
    this.#answering = answering;
    this.#requestMs = requestMs;
  }

  take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    let line = this.#lines.get(socket);
    if (line === undefined) {
      line = new Line(socket, this.#room, this.#answering, this.#requestMs);
      this.#lines.set(socket, line);
    }
    line.take(request, response);
  }

  /** Whether an error response is possible: not within or instead of the answer to an earlier request. */
  canTell(socket: Duplex): boolean {
    return this.#lines.get(socket)?.canTell !== false;
  }
}

/** The requests of one connection. */
class Line {
  readonly #socket: Socket;
  readonly #client: string;
  readonly #room: Room;
  readonly #answering: Answering;
  readonly #waiting: (() => Promise<void>)[] = [];
  readonly #open = new Set<{ readonly gone: AbortController; readonly charge: Charge }>();
  readonly #requestMs: number;
  #answered: HttpCall | undefined;
  /** Timeout of the last waiting request. Earlier ones have arrived completely. */
  #late: NodeJS.Timeout | undefined;
  #isBusy = false;

  constructor(socket: Socket, room: Room, answering: Answering, requestMs: number) {
    this.#socket = socket;
    this.#client = addressOf(socket);
    this.#room = room;
    this.#answering = answering;
    this.#requestMs = requestMs;
    socket.once("close", () => {
      clearTimeout(this.#late);
      this.#waiting.length = 0;
      for (const { gone, charge } of this.#open) {
        gone.abort(new Error("the client is gone"));
        charge.end();
      }
    });
  }

  take(request: IncomingMessage, response: ServerResponse): void {
    // Requests in the chunk that ended the connection still arrive here.
    if (this.#socket.destroyed) return;
    const charge = new Charge(this.#room, this.#client);
    const hasRoom = charge.tryAdd(headBytesOf(request));
    if (this.#isBusy && (!hasRoom || this.#waiting.length === waitingMax)) {
      charge.end();
      this.#socket.destroy();
      return;
    }
    const gone = new AbortController();
    const open = { gone, charge };
    this.#open.add(open);
    const [client, socket] = [this.#client, this.#socket];
    const call: HttpCall = { request, response, socket, client, gone: gone.signal, charge };
    this.#waiting.push(async () => {
      this.#answered = call;
      await (hasRoom ? this.#answering.answer(call) : this.#answering.refuse(call));
      charge.end();
      this.#open.delete(open);
    });
    if (this.#isBusy) this.#endWhenLate(request);
    else void this.#answerAll();
  }

  get canTell(): boolean {
    if (this.#answered === undefined) return true;
    const { request, response } = this.#answered;
    return !request.complete && !response.headersSent;
  }

  #endWhenLate(request: IncomingMessage): void {
    clearTimeout(this.#late);
    this.#late = setTimeout(() => {
      if (!request.complete) this.#socket.destroy();
    }, this.#requestMs);
  }

  async #answerAll(): Promise<void> {
    this.#isBusy = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        // An answer may take long, and each of the client's actions has its own timeout.
        this.#socket.setTimeout(0);
        if (this.#waiting.length === 0) clearTimeout(this.#late);
        await next();
      }
    } catch {
      // An internal error ends this connection, and nothing else.
      this.#socket.destroy();
    }
    this.#answered = undefined;
    this.#isBusy = false;
  }
}

function headBytesOf({ rawHeaders, url = "" }: IncomingMessage): number {
  let bytes = requestBytes + url.length;
  for (const field of rawHeaders) bytes += field.length;
  return bytes;
}
