/**
 * Keys are bytes. Inside they are strings with one character for each byte: such strings are map keys, and compare as
 * the bytes do.
 */
export type Key = string;

/** Longer arguments lists would overflow the stack. */
const pieceBytes = 8_192;

export function keyOf(bytes: Uint8Array): Key {
  if (bytes.length <= pieceBytes) return String.fromCharCode(...bytes);
  let key = "";
  for (let start = 0; start < bytes.length; start += pieceBytes)
    key += String.fromCharCode(...bytes.subarray(start, start + pieceBytes));
  return key;
}

export function bytesOf(key: Key): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(key.length);
  for (let index = 0; index < key.length; index++) bytes[index] = key.charCodeAt(index);
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
  if (rangeEnd.length === 0) return { from, to: `${from}\0` };
  if (rangeEnd.length === 1 && rangeEnd[0] === 0) return { from, to: undefined };
  return { from, to: keyOf(rangeEnd) };
}

export function contains({ from, to }: KeyRange, key: Key): boolean {
  return key >= from && (to === undefined || key < to);
}
