/** What the front reads of HTTP/2 (RFC 9113): whole frames, and where header blocks begin and end. */

export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

export const frameType = { headers: 1, settings: 4, ping: 6, continuation: 9 } as const;
export const flag = { ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

/** Length, type, flags and stream. */
export const headBytes = 9;

/** Larger ones are refused by the server behind, as it announces no other size. */
export const payloadBytesMax = 16_384;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  /** Where it begins and ends, in what it was read from. */
  readonly start: number;
  readonly end: number;
}

/** The frame that begins here; nothing if its head is not there yet. It may end after the bytes. */
export function frameAt(bytes: Uint8Array, start: number): Frame | undefined {
  if (bytes.length < start + headBytes) return undefined;
  const length = (bytes[start]! << 16) | (bytes[start + 1]! << 8) | bytes[start + 2]!;
  return { type: bytes[start + 3]!, flags: bytes[start + 4]!, start, end: start + headBytes + length };
}

/** The part of a header block in this frame, which is whole; nothing if its padding is longer than it is. */
export function blockPart(bytes: Uint8Array, { type, flags, start, end }: Frame): Uint8Array | undefined {
  let from = start + headBytes;
  let padding = 0;
  if (type === frameType.headers && (flags & flag.padded) !== 0) {
    padding = bytes[from] ?? 0;
    from += 1;
  }
  if (type === frameType.headers && (flags & flag.priority) !== 0) from += 5;
  return from + padding > end ? undefined : bytes.subarray(from, end - padding);
}

/** The settings of a server: how many requests at once, and the defaults. */
export function settingsFrame(maxConcurrentStreams: number): Buffer {
  const frame = Buffer.from([0, 0, 6, frameType.settings, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]);
  frame.writeUInt32BE(maxConcurrentStreams, headBytes + 2);
  return frame;
}

/** The answer to a PING: the same, marked. */
export function pong(ping: Uint8Array): Buffer {
  const answer = Buffer.from(ping);
  answer[4] = flag.ack;
  return answer;
}
