import { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { preface } from "./frames.js";
import { HeaderBlocks } from "./header-blocks.js";

/** A connection whose requests are repaired on their way in; answers go out as they are. */
export class RepairedConnection extends Duplex {
  readonly #socket: Socket;
  readonly #blocks = new HeaderBlocks();

  /** @param begun what has come of it already, from its first byte on */
  constructor(socket: Socket, begun: Buffer) {
    super();
    this.#socket = socket;
    this.push(begun.subarray(0, preface.length));
    this.#pass(begun.subarray(preface.length));
    socket.on("data", (piece: Buffer) => {
      if (!this.#pass(piece)) socket.pause();
    });
    socket.on("end", () => this.push(null));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(piece, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  /** False: enough for now. */
  #pass(piece: Buffer): boolean {
    return this.#blocks.take(piece).reduce((_, part) => this.push(part), true);
  }
}
