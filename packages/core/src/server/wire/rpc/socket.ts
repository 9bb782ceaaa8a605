import type { Socket } from "node:net";
import { Connection } from "../../../http2/connection.js";
import type { RequestHead } from "../../../http2/request.js";
import type { Stream } from "../../../http2/stream.js";

/** Of what is not sent yet, so much goes to the socket. */
const unsentBytesMax = 64 * 1024;

/** Up to here what leaves in one turn is one write. */
const joinedBytesMax = 64 * 1024;

/** So many writes at once, while the socket takes them all: then it is somebody else's turn. */
const writesMax = 16;

/** So many ticks the last of a connection that is over may take, and its client to close it. */
const overTicksMax = 10;

/** A client that takes nothing for so many ticks is gone, or keeps memory for nothing. */
const stuckTicksMax = 120;

/** A connection of HTTP/2 on its socket. What is said in one turn of the event loop leaves in one write. */
export class Http2Socket {
  readonly connection: Connection;
  readonly #socket: Socket;
  #isScheduled = false;
  #isTaking = false;
  #overTicks = 0;
  #stuckTicks = 0;
  #unsentBytes = 0;

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
      this.#take(piece);
      this.#endIfOver();
    });
    socket.on("drain", () => {
      this.#stuckTicks = 0;
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
    if (this.connection.isOver) this.#overTicks += 1;
    const { writableLength, writableNeedDrain } = this.#socket;
    const isStuck = writableNeedDrain && writableLength === this.#unsentBytes;
    this.#unsentBytes = writableLength;
    this.#stuckTicks = isStuck ? this.#stuckTicks + 1 : 0;
    if (this.#overTicks > overTicksMax || this.#stuckTicks > stuckTicksMax) this.#socket.destroy();
  }

  leave(): void {
    this.connection.leave();
    this.#endIfOver();
  }

  /**
   * Go's clients say a ping with nearly every request. Its answer waits for those of this turn: each write is
   * a call of the system, and wakes the client. The turn has been set as an immediate before this.
   */
  #take(piece: Buffer): void {
    this.#isTaking = true;
    this.connection.take(piece);
    this.#isTaking = false;
    if (this.#isScheduled || this.connection.send.madeBytes === 0) return;
    this.#isScheduled = true;
    setImmediate(this.#flush);
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isTaking) return;
    this.#isScheduled = true;
    process.nextTick(this.#flush);
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    const { send } = this.connection;
    for (let writes = 0; send.madeBytes > 0; writes += 1) {
      if (this.#socket.destroyed) return;
      // What is made meanwhile stays there, where it is bounded, until the socket has been drained.
      if (this.#socket.writableLength >= unsentBytesMax) {
        send.hold();
        return;
      }
      if (writes === writesMax) {
        setImmediate(this.#flush);
        return;
      }
      this.#write(send.take());
      send.pump();
    }
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
