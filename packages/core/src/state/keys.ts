/**
 * Keys are bytes. Internally they are strings with one character per byte: strings can be map keys, and
 * compare as their bytes do.
 */
export type Key = string;

/** Up to this length, an array of codes is faster than a decoder. */
const shortBytes = 32;
/** From this length on, decoding is faster than a call with an argument per character. */
const longBytes = 1_024;
const decoder = new TextDecoder("utf-16le");
const plainDecoder = new TextDecoder("utf-8", { ignoreBOM: true });

export function keyOf(bytes: Uint8Array): Key {
  if (bytes.length > shortBytes && isPlain(bytes)) return plainDecoder.decode(bytes);
  if (bytes.length > longBytes) return decoder.decode(new Uint16Array(bytes));
  // All characters at once: appending them takes twice as long, and makes a rope, which is larger. From an
  // array, since typed arrays box the numbers one by one.
  const codes: number[] = [];
  for (let index = 0; index < bytes.length; index += 1) codes.push(bytes[index]!);
  return Reflect.apply(String.fromCharCode, undefined, codes);
}

/** Whether all bytes are ASCII, which UTF-8 encodes as one byte per character. */
function isPlain(bytes: Uint8Array): boolean {
  for (let index = 0; index < bytes.length; index += 1) if (bytes[index]! > 0x7f) return false;
  return true;
}

export function bytesOf(key: Key): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(key.length);
  for (let index = 0; index < key.length; index += 1) bytes[index] = key.charCodeAt(index);
  return bytes;
}

/** Keys from `from` (inclusive) to `to` (exclusive). Without `to`, all keys from `from` on. */
export interface KeyRange {
  readonly from: Key;
  readonly to: Key | undefined;
}

/** As in requests: an empty `rangeEnd` means one key, and `\0` everything from the key on. */
export function rangeOf(key: Uint8Array, rangeEnd: Uint8Array): KeyRange {
  const from = keyOf(key);
  if (rangeEnd.length === 0) return singleKeyRange(from);
  if (rangeEnd.length === 1 && rangeEnd[0] === 0) return { from, to: undefined };
  return { from, to: keyOf(rangeEnd) };
}

/** The range of a single key. */
export function singleKeyRange(key: Key): KeyRange {
  return { from: key, to: `${key}\0` };
}

export function contains({ from, to }: KeyRange, key: Key): boolean {
  return key >= from && (to === undefined || key < to);
}

/** Returns the key of a range of one key; otherwise undefined. */
export function singleKey({ from, to }: KeyRange): Key | undefined {
  return to?.length === from.length + 1 && to.endsWith("\0") && to.startsWith(from) ? from : undefined;
}
