import type { Connection } from "../../http2/connection.js";
import type { Receiver, Stream } from "../../http2/stream.js";
import { answerEnd, answerHead, failedAtOnce, failedEnd } from "./blocks.js";
import { type CallBase, type Carrier, type Method, type Status, statusCode } from "./call.js";
import { Exchange } from "./exchange.js";
import { MessageReader } from "./message-reader.js";

/** One call, on its stream of HTTP/2. */
export class Http2Carrier implements Carrier, Receiver {
  readonly exchange: Exchange;
  readonly #connection: Connection;
  readonly #stream: Stream;
  readonly #reader: MessageReader;
  readonly #over: (exchange: Exchange) => void;

  /** @param over told when nothing more is said in this call */
  constructor(
    connection: Connection,
    stream: Stream,
    method: Method,
    base: Omit<CallBase, "carrier">,
    messageBytesMax: number,
    over: (exchange: Exchange) => void,
  ) {
    this.#connection = connection;
    this.#stream = stream;
    this.#reader = new MessageReader(messageBytesMax);
    this.#over = over;
    stream.receiver = this;
    this.exchange = new Exchange(method, { ...base, carrier: this });
  }

  data(bytes: Uint8Array, isEnd: boolean): void {
    const { exchange } = this;
    const refusal = this.#reader.push(bytes, (message) => exchange.message(message));
    if (refusal !== undefined) {
      exchange.fail(refusal);
      return;
    }
    // A message that is longer than the window has to come as a whole before it can be taken.
    if (!exchange.isBounded) this.consumed(bytes.length);
    if (!isEnd) return;
    if (this.#reader.heldBytes > 0)
      exchange.fail({ code: statusCode.internal, details: "a message has no end" });
    else exchange.remoteEnded();
  }

  over(isComplete: boolean): void {
    this.#over(this.exchange);
    this.exchange.over(isComplete);
  }

  answer(message: Uint8Array): void {
    if (!this.#stream.isOver) this.#connection.send.answer(this.#stream, answerHead, message, answerEnd);
  }

  message(message: Uint8Array, taken: () => void): void {
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

  consumed(bytes: number): void {
    this.#connection.consumed(this.#stream, bytes);
  }
}
