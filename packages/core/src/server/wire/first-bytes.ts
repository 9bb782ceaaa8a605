import type { Socket } from "node:net";
import { preface } from "../../http2/frames.js";

/** Number of bytes after which every HTTP/1.1 request differs from the HTTP/2 preface. */
const tellingBytes = 3;

/** Handlers of connections, which they read from the first byte on. */
export interface Behind {
  readonly http1: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
}

/**
 * Distinguishes HTTP/2 and HTTP/1.1. A connection that stays silent, or stops within these bytes, is closed.
 */
export function hearFirstWords(socket: Socket, silenceMs: number, behind: Behind): void {
  const silence = setTimeout(() => socket.destroy(), silenceMs);
  const over = () => clearTimeout(silence);
  socket.once("close", over);
  let heard: Buffer = Buffer.alloc(0);
  const hear = (piece: Buffer) => {
    heard = Buffer.concat([heard, piece]);
    const begins = Math.min(heard.length, tellingBytes);
    const isHttp2 = preface.every((byte, at) => at >= begins || heard[at] === byte);
    if (isHttp2 && begins < tellingBytes) return;
    socket.off("data", hear).off("close", over);
    over();
    socket.pause();
    socket.unshift(heard);
    if (isHttp2) behind.http2(socket);
    else behind.http1(socket);
    socket.resume();
  };
  socket.on("data", hear);
}
