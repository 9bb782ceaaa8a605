import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { begin, frame, headers } from "../../../../../../test/support/http2-bytes.js";
import { frameType } from "../../../http2/frames.js";
import { answerEnd, answerHead } from "./blocks.js";
import { Http2Socket } from "./socket.js";

const ping = frame(frameType.ping, 0, 0, Buffer.alloc(8));
/**
 * Lets pushed bytes be handled. Answers to them are sent in the same turn, and output that waits for those in
 * the next.
 */
const turn = async () => {
  for (let count = 0; count < 2; count += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** A socket that accepts writes when told to, and whose other end never closes it. */
class HeldSocket extends Duplex {
  #taken: (() => void) | undefined;
  readonly written: Buffer[] = [];

  constructor() {
    super({ allowHalfOpen: true });
  }

  override _read(): void {}

  override _write(piece: Buffer, _encoding: string, taken: () => void): void {
    this.written.push(piece);
    this.#taken = taken;
  }

  takeOne(): void {
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
  }
}

type Request = ConstructorParameters<typeof Http2Socket>[2];

const answerMuch: Request = ({ send }, stream) =>
  send.answer(stream, answerHead, new Uint8Array(1_000_000), answerEnd);

function served(request = answerMuch): { socket: HeldSocket; http2: Http2Socket } {
  const socket = new HeldSocket();
  const http2 = new Http2Socket(socket as unknown as Socket, 10, request);
  socket.push(begin);
  return { socket, http2 };
}

test("a ping that arrives with a request is answered in the same write, and one that arrives alone at once", async () => {
  const message = Buffer.from("said");
  // Answers in an immediate, like the host's turn.
  const { socket } = served(({ send }, stream) =>
    setImmediate(() => send.answer(stream, answerHead, message, answerEnd)),
  );
  const answersTo = async (said: Buffer) => {
    const before = socket.written.length;
    socket.push(said);
    for (let count = 0; count < 4; count += 1) {
      await turn();
      socket.takeOne();
    }
    return socket.written.slice(before).map((piece) => [piece.readUInt8(3), piece.includes(message)]);
  };
  await answersTo(Buffer.alloc(0));
  expect(await answersTo(Buffer.concat([ping, headers(1, 1)]))).toEqual([[frameType.ping, true]]);
  expect(await answersTo(ping)).toEqual([[frameType.ping, false]]);
});

test("a client that reads no answers is disconnected before many accumulate", async () => {
  const { http2, socket } = served();
  for (let round = 0; round < 60 && !http2.connection.isOver; round += 1) {
    socket.push(Buffer.concat(Array.from({ length: 1_000 }, () => ping)));
    await turn();
    if (round % 4 === 3) http2.tick();
  }
  expect(http2.connection.isOver).toBe(true);
  expect(socket.writableLength).toBeLessThan(200_000);
});

test("an ended connection is closed, even if its client never closes it or reads nothing", async () => {
  for (const takes of [true, false]) {
    const { http2, socket } = served();
    await turn();
    http2.leave();
    for (let second = 0; second < 9; second += 1) {
      if (takes) socket.takeOne();
      await turn();
      http2.tick();
    }
    expect([socket.destroyed, socket.writableFinished]).toEqual([false, takes]);
    for (let second = 0; second < 3; second += 1) http2.tick();
    expect(socket.destroyed).toBe(true);
  }
});

test("a client that reads nothing for two minutes is disconnected, and a slow one is not", async () => {
  for (const takes of [true, false]) {
    const { http2, socket } = served();
    socket.push(Buffer.concat([frame(4, 0, 0, Buffer.from("00047fffffff", "hex")), headers(1, 1)]));
    socket.push(frame(8, 0, 0, Buffer.from("00ffffff", "hex")));
    await turn();
    expect(socket.writableNeedDrain).toBe(true);
    let seconds = 0;
    for (; seconds < 300 && !socket.destroyed; seconds += 1) {
      if (takes && seconds % 60 === 0) socket.takeOne();
      await turn();
      http2.tick();
    }
    expect(seconds).toBe(takes ? 300 : 122);
  }
});
