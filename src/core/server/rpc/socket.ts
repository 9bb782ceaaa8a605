import type { Socket } from "node:net";
import { Connection } from "../../http2/connection.js";
import type { RequestHead } from "../../http2/request.js";
import type { Stream } from "../../http2/stream.js";

/** Of what is not sent yet, so much goes to the socket. */
const unsentBytesMax = 64 * 1024;

/** Up to here what leaves in one turn is one write. */
const joinedBytesMax = 64 * 1024;

/** So many writes at once, while the socket takes them all: then it is somebody else's turn. */
const writesMax = 16;

/** A connection of HTTP/2 on its socket. What is said in one turn of the event loop leaves in one write. */
export class Http2Socket {
  readonly connection: Connection;
  readonly #socket: Socket;
  #isScheduled = false;

  constructor(
    socket: Socket,
    streamsMax: number,
    request: (connection: Connection, stream: Stream, head: RequestHead) => void,
  ) {
    this.#socket = socket;
    this.connection = new Connection(
      {
        allocate: (length) => Buffer.allocUnsafe(length),
        made: () => this.#schedule(),
        request: (stream, head) => request(this.connection, stream, head),
      },
      streamsMax,
    );
    this.#schedule();
    socket.on("data", (piece: Buffer) => {
      this.connection.take(piece);
      this.#endIfOver();
    });
    socket.on("drain", () => {
      this.connection.send.release();
      this.#schedule();
    });
    socket.on("end", () => socket.destroy());
    socket.on("close", () => this.connection.close());
  }

  /** Once a second. */
  tick(): void {
    this.connection.tick();
    this.#endIfOver();
  }

  leave(): void {
    this.connection.leave();
    this.#endIfOver();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    process.nextTick(this.#flush);
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    const { send } = this.connection;
    for (let writes = 0; writes < writesMax; writes += 1) {
      const pieces = send.take();
      if (pieces.length === 0) break;
      if (this.#socket.destroyed) return;
      this.#write(pieces);
      if (this.#socket.writableLength >= unsentBytesMax) {
        send.hold();
        break;
      }
      send.pump();
    }
    if (send.madeBytes > 0) setImmediate(this.#flush);
    this.#endIfOver();
  };

  #write(pieces: readonly Uint8Array[]): void {
    if (pieces.length === 1) {
      this.#socket.write(pieces[0]!);
      return;
    }
    let bytes = 0;
    for (const piece of pieces) bytes += piece.length;
    if (bytes <= joinedBytesMax) this.#socket.write(Buffer.concat(pieces, bytes));
    else {
      this.#socket.cork();
      for (const piece of pieces) this.#socket.write(piece);
      this.#socket.uncork();
    }
  }

  #endIfOver(): void {
    if (this.connection.isOver && this.connection.send.madeBytes === 0 && !this.#socket.writableEnded)
      this.#socket.end();
  }
}
