/**
 * Keys are bytes. Inside they are strings with one character for each byte: such strings are map keys, and
 * compare as the bytes do.
 */
export type Key = string;

/** Up to so many bytes an array of their numbers is made faster than a decoder is called. */
const shortBytes = 32;
/** From so many on, decoding is cheaper than a call with an argument for each character. */
const longBytes = 1_024;
const decoder = new TextDecoder("utf-16le");
const plainDecoder = new TextDecoder("utf-8", { ignoreBOM: true });

export function keyOf(bytes: Uint8Array): Key {
  if (bytes.length > shortBytes && isPlain(bytes)) return plainDecoder.decode(bytes);
  if (bytes.length > longBytes) return decoder.decode(new Uint16Array(bytes));
  // In one piece: adding character after character takes twice as long, and makes a rope, which is larger.
  // And of an array: numbers of another kind of list are boxed one by one.
  const codes: number[] = [];
  for (let index = 0; index < bytes.length; index += 1) codes.push(bytes[index]!);
  return Reflect.apply(String.fromCharCode, undefined, codes);
}

/** Nothing but ASCII, which UTF-8 has as one byte for each character. */
function isPlain(bytes: Uint8Array): boolean {
  for (let index = 0; index < bytes.length; index += 1) if (bytes[index]! > 0x7f) return false;
  return true;
}

export function bytesOf(key: Key): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(key.length);
  for (let index = 0; index < key.length; index += 1) bytes[index] = key.charCodeAt(index);
  return bytes;
}

/** Keys from `from` on and before `to`; without `to`, all from `from` on. */
export interface KeyRange {
  readonly from: Key;
  readonly to: Key | undefined;
}

/** As requests say it: no `rangeEnd` is one key, `\0` is everything from the key on. */
export function rangeOf(key: Uint8Array, rangeEnd: Uint8Array): KeyRange {
  const from = keyOf(key);
  if (rangeEnd.length === 0) return singleKeyRange(from);
  if (rangeEnd.length === 1 && rangeEnd[0] === 0) return { from, to: undefined };
  return { from, to: keyOf(rangeEnd) };
}

/** Nothing but this key. */
export function singleKeyRange(key: Key): KeyRange {
  return { from: key, to: `${key}\0` };
}

export function contains({ from, to }: KeyRange, key: Key): boolean {
  return key >= from && (to === undefined || key < to);
}

/** The range's only key, if it is one of a single key. */
export function singleKey({ from, to }: KeyRange): Key | undefined {
  return to?.length === from.length + 1 && to.endsWith("\0") && to.startsWith(from) ? from : undefined;
}
