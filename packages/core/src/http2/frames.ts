/** RFC 9113: the format of frames. */

export const preface = Uint8Array.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (character) =>
  character.charCodeAt(0),
);

export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flag = { ack: 0x1, endStream: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

export const setting = {
  tableBytes: 1,
  push: 2,
  streamsMax: 3,
  window: 4,
  frameBytes: 5,
  listBytes: 6,
} as const;

/** Section 7. */
export const errorCode = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
} as const;
export type ErrorCode = (typeof errorCode)[keyof typeof errorCode];

/** Size of a frame's head: length, type, flags and stream. */
export const headBytes = 9;

/** Maximum in both directions: we announce no larger one, and send none. */
export const payloadBytesMax = 16_384;

/** The initial size of each flow-control window. */
export const initialWindow = 65_535;
export const windowMax = 2 ** 31 - 1;

export function putHead(
  bytes: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  stream: number,
): void {
  bytes[at] = length >>> 16;
  bytes[at + 1] = length >>> 8;
  bytes[at + 2] = length;
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  putNumber(bytes, at + 5, stream);
}

export function putNumber(bytes: Uint8Array, at: number, number: number): void {
  bytes[at] = number >>> 24;
  bytes[at + 1] = number >>> 16;
  bytes[at + 2] = number >>> 8;
  bytes[at + 3] = number;
}

/** Reads 31 bits; the highest bit is reserved. */
export function numberAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! & 0x7f) << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

/** A frame of numbers of four bytes each. */
export function frameOf(type: number, flags: number, stream: number, ...numbers: number[]): Uint8Array {
  const frame = new Uint8Array(headBytes + 4 * numbers.length);
  putHead(frame, 0, 4 * numbers.length, type, flags, stream);
  for (const [index, number] of numbers.entries()) putNumber(frame, headBytes + 4 * index, number);
  return frame;
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Uint8Array {
  const frame = new Uint8Array(headBytes + 6 * settings.length);
  putHead(frame, 0, 6 * settings.length, frameType.settings, 0, 0);
  for (const [index, [id, value]] of settings.entries()) {
    const at = headBytes + 6 * index;
    frame[at + 1] = id;
    putNumber(frame, at + 2, value);
  }
  return frame;
}
