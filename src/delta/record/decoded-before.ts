import { sameBytes } from "./envelope.js";

/** So many of the contents that were read last are kept in mind: a few hundred bytes each, and as much for what they stand for. */
export const keptMax = 256;

/** Longer ones are decoded anew each time. */
const keptBytesMax = 1_024;

/** Of a record, the checksum. */
const hashedBytes = 8;

/**
 * Decodes contents, and remembers those of the last: the stores of a farm hold the same bytes, and who waits for a lease
 * reads them again and again. What was decoded once is known by all of its bytes, of which this keeps a copy.
 */
export class DecodedBefore<Value extends object> {
  readonly #decode: (bytes: Uint8Array) => Value;
  /** By a hash of the end. What was added first comes first. */
  readonly #kept = new Map<number, { readonly bytes: Uint8Array; readonly value: Value }>();

  constructor(decode: (bytes: Uint8Array) => Value) {
    this.#decode = decode;
  }

  /** Throws what `decode` throws. */
  decode(bytes: Uint8Array): Value {
    const hash = hashOf(bytes);
    const kept = this.#kept.get(hash);
    if (kept !== undefined && sameBytes(kept.bytes, bytes)) return kept.value;
    const value = this.#decode(bytes);
    if (bytes.length > keptBytesMax) return value;
    this.#kept.set(hash, { bytes: bytes.slice(), value });
    if (this.#kept.size > keptMax) this.#kept.delete(this.#kept.keys().next().value!);
    return value;
  }
}

function hashOf(bytes: Uint8Array): number {
  let hash = bytes.length;
  for (let index = Math.max(0, bytes.length - hashedBytes); index < bytes.length; index += 1)
    hash = (Math.imul(hash, 31) + bytes[index]!) | 0;
  return hash;
}
