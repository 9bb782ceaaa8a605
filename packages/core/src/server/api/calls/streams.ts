import type { CoreHost } from "../../../host/host.js";
import { NumberMap, Room } from "leasehold/common";
import { CoreError, tooManyRequests } from "../../../state/errors.js";
import { statusOf, type ServerStream } from "../../wire/rpc/call.js";
import { asksForLeader, clientOf } from "./calls.js";

/**
 * Number of election timeouts without a leader after which a stream ends, if its client requires a leader.
 * etcd's value.
 */
const leaderlessFactor = 3;

/** The part of a stream that is kept. */
type OpenStream = Pick<ServerStream, "fail" | "metadata" | "peer" | "whenOver">;

interface Open {
  readonly stream: OpenStream;
  readonly wantsLeader: boolean;
}

/**
 * The open streams, in fair shares by client. A stop ends all; the loss of the leader ends those that
 * require one.
 */
export class Streams {
  /** Further streams are refused: each takes memory for as long as its client wants. */
  static readonly max = 16_384;
  readonly #host: CoreHost;
  readonly #electionMs: number;
  readonly #open = new NumberMap<Open>();
  #lastNumber = 0;
  readonly #room = new Room(Streams.max, tooManyRequests);
  readonly #looking: NodeJS.Timeout;
  #ledMs = performance.now();

  constructor(host: CoreHost, electionMs: number) {
    this.#host = host;
    this.#electionMs = electionMs;
    this.#looking = setInterval(() => this.#look(), electionMs / 2);
  }

  /** Returns false if the stream was refused. */
  admit(stream: OpenStream): boolean {
    const wantsLeader = asksForLeader(stream);
    if (wantsLeader && this.#host.status().leader === 0n) {
      fail(stream, new CoreError("noLeader"));
      return false;
    }
    const client = clientOf(stream);
    if (!this.#room.tryTake(client, 1)) {
      fail(stream, this.#room.refusal(client));
      return false;
    }
    const number = ++this.#lastNumber;
    this.#open.set(number, { stream, wantsLeader });
    stream.whenOver(() => {
      this.#open.delete(number);
      this.#room.release(client, 1);
    });
    return true;
  }

  stop(): void {
    clearInterval(this.#looking);
    for (const { stream } of this.#open.values()) fail(stream, new CoreError("stopped"));
  }

  #look(): void {
    const nowMs = performance.now();
    if (this.#host.status().leader !== 0n) this.#ledMs = nowMs;
    if (nowMs - this.#ledMs < leaderlessFactor * this.#electionMs) return;
    for (const { stream, wantsLeader } of this.#open.values())
      if (wantsLeader) fail(stream, new CoreError("noLeader"));
  }
}

/** Ends a stream with an error. */
export function fail(stream: Pick<ServerStream, "fail">, error: CoreError): void {
  stream.fail(statusOf(error));
}
