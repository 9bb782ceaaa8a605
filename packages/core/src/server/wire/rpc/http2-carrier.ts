import { Charge, NumberMap, type Room } from "leasehold/common";
import type { Connection } from "../../../http2/connection.js";
import type { Receiver, Stream } from "../../../http2/stream.js";
import { answerEnd, answerHead, failedAtOnce, failedEnd } from "./blocks.js";
import { errorCode } from "../../../http2/frames.js";
import {
  type CallBase,
  type Carrier,
  type CodedError,
  type Encoded,
  type Method,
  type Status,
  statusOf,
} from "./call.js";
import { Exchange } from "./exchange.js";
import { MessageReader } from "./message-reader.js";

/** Memory of an open call in addition to its input: measured, and rounded up. */
const callBytes = 4 * 1024;

/** State shared by all calls of a server. */
export class Calls {
  readonly messageBytesMax: number;
  /** Room for calls, and for requests that no handler has taken; connections share it. */
  readonly room: Room<CodedError>;
  /** Calls with a deadline. */
  readonly timed = new NumberMap<Http2Carrier>();
  #lastNumber = 0;

  constructor(messageBytesMax: number, room: Room<CodedError>) {
    this.messageBytesMax = messageBytesMax;
    this.room = room;
  }

  nextNumber(): number {
    return ++this.#lastNumber;
  }
}

/** One call, on its stream of HTTP/2. */
export class Http2Carrier implements Carrier, Receiver {
  readonly exchange: Exchange;
  readonly #number: number;
  readonly #calls: Calls;
  readonly #connection: Connection;
  readonly #stream: Stream;
  readonly #client: string;
  readonly #reader: MessageReader;
  /** Memory of the call itself until it is over. */
  readonly #ownBytes: number;
  readonly #charge: Charge;
  /** Bytes still held here, but already returned to the window. */
  #given = 0;

  constructor(
    calls: Calls,
    connection: Connection,
    stream: Stream,
    method: Method,
    base: Omit<CallBase, "carrier">,
    headBytes: number,
  ) {
    this.#calls = calls;
    this.#number = calls.nextNumber();
    this.#connection = connection;
    this.#stream = stream;
    this.#client = base.peer.address;
    this.#ownBytes = callBytes + headBytes;
    this.#charge = new Charge(calls.room, this.#client);
    this.#reader = new MessageReader(calls.messageBytesMax);
    this.exchange = new Exchange(method, { ...base, carrier: this }, this.#reader);
    // The handler may have refused the call already.
    if (stream.isOver) {
      this.over(true);
      return;
    }
    stream.receiver = this;
    if (Number.isFinite(base.deadlineMs)) calls.timed.set(this.#number, this);
    this.#count(0);
  }

  data(bytes: Uint8Array, isEnd: boolean): void {
    const { exchange } = this;
    if (exchange.isDeaf) return;
    const only = isEnd && !exchange.isOfMany ? this.#reader.only(bytes) : undefined;
    if (only === undefined) this.#take(bytes);
    else exchange.only(only);
    if (!isEnd) return;
    if (!exchange.isOfMany) this.#count(0);
    exchange.remoteEnded();
  }

  #take(bytes: Uint8Array): void {
    const { exchange } = this;
    this.#reader.push(bytes);
    exchange.more();
    if (exchange.isDeaf) return;
    if (exchange.isOfMany) this.#count(this.#reader.heldBytes);
    // A complete request returns its bytes to the window when the handler takes it, so a paused stream gets
    // no more than its window. An incomplete request may be longer than that, so its bytes are returned as
    // they arrive. A method with one request begins only after the half-close, and until then its request
    // counts as incomplete.
    if (exchange.isOfMany && this.#reader.hasWhole) return;
    const more = exchange.isOfMany ? this.#reader.heldBytes - this.#given : bytes.length;
    this.#given += more;
    if (!exchange.isOfMany) this.#count(this.#given);
    this.#connection.consumed(this.#stream, more);
  }

  /** Charges the client for the memory of the call's input. */
  #count(bytes: number): void {
    // A call that is over must not be charged again.
    if (this.#stream.isOver) return;
    if (this.#charge.trySet(this.#ownBytes + bytes)) return;
    this.exchange.fail(statusOf(this.#calls.room.refusal(this.#client)));
    this.#reader.drop();
  }

  over(isComplete: boolean): void {
    this.#reader.drop();
    this.#charge.end();
    this.#calls.timed.delete(this.#number);
    this.exchange.over(isComplete);
  }

  answer(message: Encoded): void {
    if (!this.#stream.isOver) this.#connection.send.answer(this.#stream, answerHead, message, answerEnd);
  }

  message(message: Encoded, taken: () => void): void {
    this.#connection.send.message(this.#stream, answerHead, message, taken);
  }

  end(status: Status | undefined): void {
    const { send } = this.#connection;
    const stream = this.#stream;
    if (status === undefined) {
      send.head(stream, answerHead);
      send.end(stream, answerEnd);
    } else send.end(stream, stream.hasSentHead ? failedEnd(status) : failedAtOnce(status));
  }

  /** gRPC clients map this code to "resource exhausted". Trailers would arrive in the middle of a message. */
  cut(): void {
    this.#connection.cut(this.#stream, errorCode.enhanceYourCalm);
  }

  consumed(bytes: number): void {
    const already = Math.min(this.#given, bytes);
    this.#given -= already;
    this.#count(this.#reader.heldBytes);
    this.#connection.consumed(this.#stream, bytes - already);
  }
}
