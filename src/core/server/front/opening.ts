import { flag, type Frame, frameAt, frameType, headBytes, payloadBytesMax, pong, preface } from "./frames.js";
import { framesOfBlock, repairBlock } from "./header-blocks.js";

/**
 * What a client sends before its connection is handed on: a flow-control window of data (64 KiB), and the
 * requests of a client that begins with thousands at once.
 */
const heldBytesMax = 1024 * 1024;

/** What is to be done with a connection now; the pings in what came have been answered then. */
export type Step = { readonly pongs: readonly Buffer[] } & (
  | { readonly kind: "wait" | "refuse" }
  /** It is to be served, with what has come; later requests need repair if the first did. */
  | { readonly kind: "serve"; readonly bytes: Buffer; readonly needsRepair: boolean }
);

/**
 * The beginning of an HTTP/2 connection, up to its first request: only that tells whether the client needs
 * repair. As clients wait for the server's settings before they ask, these have been sent to it already, and
 * its acknowledgement is taken out: the server behind sends its own, and expects one for these.
 */
export class Opening {
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  /** What has not been looked at, as it is not whole. */
  #rest: Buffer = Buffer.alloc(0);
  #hasPreface = false;
  #firstRequest: boolean | undefined;
  #isAcknowledged = false;

  take(piece: Buffer): Step {
    this.#rest = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    const pongs: Buffer[] = [];
    if (!this.#hasPreface) {
      const begins = Math.min(this.#rest.length, preface.length);
      if (!this.#rest.subarray(0, begins).equals(preface.subarray(0, begins)))
        return { kind: "refuse", pongs };
      if (begins < preface.length) return { kind: "wait", pongs };
      this.#hasPreface = true;
      this.#keep(0, begins);
      this.#rest = this.#rest.subarray(begins);
    }
    const until = this.#look(pongs);
    this.#rest = this.#rest.subarray(until);
    if (this.#firstRequest !== undefined && this.#isAcknowledged) {
      const bytes = Buffer.concat([...this.#kept, this.#rest]);
      return { kind: "serve", pongs, bytes, needsRepair: this.#firstRequest };
    }
    return { kind: this.#isTooMuch ? "refuse" : "wait", pongs };
  }

  get #isTooMuch(): boolean {
    const next = frameAt(this.#rest, 0);
    const isLong = next !== undefined && next.end - headBytes > payloadBytesMax;
    return isLong || this.#keptBytes + this.#rest.length > heldBytesMax;
  }

  /** @returns up to where the frames are whole and have been looked at */
  #look(pongs: Buffer[]): number {
    let at = 0;
    for (let frame = frameAt(this.#rest, 0); frame !== undefined; frame = frameAt(this.#rest, at)) {
      const end = this.#lookAt(frame, pongs);
      if (end === undefined) break;
      at = end;
    }
    return at;
  }

  #lookAt(frame: Frame, pongs: Buffer[]): number | undefined {
    const { end, flags, start, type } = frame;
    if (end > this.#rest.length) return undefined;
    const isAck = (flags & flag.ack) !== 0;
    if (type === frameType.headers) {
      const block = framesOfBlock(this.#rest, frame);
      if (block === undefined) return undefined;
      this.#firstRequest ??= repairBlock(this.#rest, block);
      return this.#keep(start, block.at(-1)!.end);
    }
    if (type === frameType.ping && !isAck) pongs.push(pong(this.#rest.subarray(start, end)));
    else if (type === frameType.settings && isAck && !this.#isAcknowledged) this.#isAcknowledged = true;
    else this.#keep(start, end);
    return end;
  }

  #keep(start: number, end: number): number {
    this.#kept.push(this.#rest.subarray(start, end));
    this.#keptBytes += end - start;
    return end;
  }
}
