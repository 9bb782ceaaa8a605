import type { Socket } from "node:net";
import { Connection } from "../../../http2/connection.js";
import type { RequestHead } from "../../../http2/request.js";
import type { Stream } from "../../../http2/stream.js";

/** Bound of unsent bytes in the socket. */
const unsentBytesMax = 64 * 1024;

/** Output of one turn up to this size is one write. */
const joinedBytesMax = 64 * 1024;

/** Bound of consecutive writes while the socket accepts them all: then other connections get their turns. */
const writesMax = 16;

/** Ticks allowed for draining a connection and for the client to close it. */
const overTicksMax = 10;

/** A client that reads nothing for this many ticks is gone, or wastes memory. */
const stuckTicksMax = 120;

/** An HTTP/2 connection on its socket. Output of one event loop turn is one write. */
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

  /** Called once a second. */
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
   * Go's clients send a ping with nearly every request. Its answer should join the output of the same turn,
   * since each write is a system call, and wakes the client. The host's turn was scheduled as an immediate
   * before this one.
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
      // Back-pressure: further output stays in the connection, where it is bounded, until the socket has
      // drained.
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
