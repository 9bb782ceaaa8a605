import { type Decoded, HeaderDecoder } from "./header-decoder.js";
import { type RequestHead, requestHead } from "./request.js";

/** Number of blocks remembered: clients repeat headers from call to call. */
const knownMax = 8;
/** Longer blocks have content that is unlikely to repeat. */
const knownBytesMax = 64;

interface Known {
  readonly block: Uint8Array;
  readonly head: RequestHead;
}

export type Read = RequestHead | "malformed" | "too large";

/** Reads the heads of requests. A repeated block costs no decoding while the table is unchanged. */
export class BlockReader {
  readonly #decoder: HeaderDecoder;
  readonly #known: Known[] = [];
  #generation = 0;

  constructor(listBytesMax: number) {
    this.#decoder = new HeaderDecoder(listBytesMax);
  }

  /** @throws CompressionError */
  fields(block: Uint8Array): Decoded {
    return this.#decoder.decode(block);
  }

  /** @throws CompressionError */
  head(block: Uint8Array): Read {
    if (this.#generation === this.#decoder.generation)
      for (const { block: before, head } of this.#known) if (isSame(before, block)) return head;
    const { fields, isTooLarge } = this.#decoder.decode(block);
    if (isTooLarge) return "too large";
    const head = requestHead(fields);
    if (head === undefined) return "malformed";
    // A block that changes the table means something else the next time.
    const changed = this.#generation !== this.#decoder.generation;
    if (changed) this.#known.length = 0;
    this.#generation = this.#decoder.generation;
    if (changed || block.length > knownBytesMax) return head;
    if (this.#known.length === knownMax) this.#known.shift();
    this.#known.push({ block: block.slice(), head });
    return head;
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at += 1) if (one[at] !== other[at]) return false;
  return true;
}
