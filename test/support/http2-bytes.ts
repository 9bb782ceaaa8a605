import { Connection } from "../../packages/core/src/http2/connection.js";
import { flag, frameType, headBytes, preface, putHead } from "../../packages/core/src/http2/frames.js";
import { headerBlock } from "../../packages/core/src/http2/header-blocks.js";
import type { RequestHead } from "../../packages/core/src/http2/request.js";
import type { Stream } from "../../packages/core/src/http2/stream.js";

/** Frames as a client writes them, and the answers of a connection. */

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array = new Uint8Array(),
): Buffer {
  const bytes = Buffer.alloc(headBytes + payload.length);
  putHead(bytes, 0, payload.length, type, flags, stream);
  bytes.set(payload, headBytes);
  return bytes;
}

export const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

export function settings(...pairs: [id: number, value: number][]): Buffer {
  const payload = pairs.map(([id, value]) => Buffer.concat([Buffer.from([0, id]), number(value)]));
  return frame(frameType.settings, 0, 0, Buffer.concat(payload));
}

export const begin = Buffer.concat([preface, settings()]);

export const requestBlock = headerBlock([
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/service/Method"],
  [":authority", "http://127.0.0.1:2379"],
  ["content-type", "application/grpc"],
  ["te", "trailers"],
]);

export const headers = (stream: number, flags = 0, block: Uint8Array = requestBlock): Buffer =>
  frame(frameType.headers, flag.endHeaders | flags, stream, block);

export const data = (stream: number, bytes: number, flags = 0): Buffer =>
  frame(frameType.data, flags, stream, Buffer.alloc(bytes));

export interface Sent {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A connection whose socket takes everything at once, and the frames that it has sent. */
export class Talk {
  readonly connection: Connection;
  readonly sent: Sent[] = [];
  readonly requests: RequestHead[] = [];
  readonly streams: Stream[] = [];
  /** The content bytes of each stream, and how the stream ended. */
  readonly contents = new Map<number, { bytes: number; isEnded: boolean; over: boolean | undefined }>();
  /** The most bytes that have waited to be taken from the connection. */
  madeBytesMost = 0;

  constructor(streamsMax = 100) {
    this.connection = new Connection(
      {
        allocate: (length) => new Uint8Array(length),
        made: () => undefined,
        request: (stream, head) => {
          this.requests.push(head);
          this.streams.push(stream);
          const content = { bytes: 0, isEnded: stream.isRemoteEnded, over: undefined as boolean | undefined };
          this.contents.set(stream.id, content);
          stream.receiver = {
            data: (bytes, isEnd) => {
              content.bytes += bytes.length;
              if (isEnd) content.isEnded = true;
            },
            over: (isComplete) => (content.over = isComplete),
          };
        },
      },
      streamsMax,
    );
    this.drain();
  }

  /** Hands in these bytes, and returns the frames that the connection sends in answer. */
  say(...pieces: Uint8Array[]): Sent[] {
    const before = this.sent.length;
    for (const piece of pieces) this.connection.take(piece);
    this.drain();
    return this.sent.slice(before);
  }

  drain(): void {
    for (;;) {
      this.madeBytesMost = Math.max(this.madeBytesMost, this.connection.send.madeBytes);
      const bytes = Buffer.concat(this.connection.send.take());
      if (bytes.length === 0) return;
      for (let at = 0; at < bytes.length;) {
        const length = bytes.readUIntBE(at, 3);
        const payload = bytes.subarray(at + headBytes, at + headBytes + length);
        this.sent.push({
          type: bytes[at + 3]!,
          flags: bytes[at + 4]!,
          stream: bytes.readUInt32BE(at + 5),
          payload,
        });
        at += headBytes + length;
      }
      this.connection.send.pump();
    }
  }

  /** The code of the GOAWAY with which the connection has ended. */
  get wentAway(): number | undefined {
    const found = this.sent.findLast(({ type }) => type === frameType.goAway);
    return this.connection.isOver ? found?.payload.readUInt32BE(4) : undefined;
  }

  /** The codes of the resets of a stream. */
  resets(stream: number): number[] {
    return this.sent
      .filter(({ stream: of, type }) => type === frameType.resetStream && of === stream)
      .map(({ payload }) => payload.readUInt32BE());
  }
}
