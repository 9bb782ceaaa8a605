import { sameBytes } from "./envelope.js";

/** Contents in the cache: a few hundred bytes each, and as many for the decoded value. */
export const keptMax = 256;

/** Longer contents are not cached. */
const keptBytesMax = 1_024;

/** The last bytes: in a record these are the checksum. */
const hashedBytes = 8;

/**
 * Decodes contents and caches the latest ones: the stores of a farm have the same bytes, and a process that
 * waits for a lease reads them repeatedly. A cached content is compared with a copy byte by byte.
 */
export class DecodeCache<Value extends object> {
  readonly #decode: (bytes: Uint8Array) => Value;
  /** By a hash of the last bytes, oldest first. */
  readonly #kept = new Map<number, { readonly bytes: Uint8Array; readonly value: Value }>();

  constructor(decode: (bytes: Uint8Array) => Value) {
    this.#decode = decode;
  }

  /** Throws whatever `decode` throws. */
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
