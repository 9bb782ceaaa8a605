/** The most memory kept for reuse, bytes. */
const keptBytesMax = 8 * 2 ** 20;
/** Sizes are rounded up to a multiple of this, so that frames of one block size share buffers. */
const roundedTo = 4_096;

/**
 * Memory for the blocks of one upload or connection. Allocating memory for each block costs more than
 * processing the block: the system clears its pages, and every few blocks trigger a garbage collection.
 */
export class Buffers {
  readonly #kept: ArrayBuffer[] = [];
  #keptBytes = 0;

  /** The contents are uninitialized. */
  take(bytes: number): Uint8Array {
    const at = this.#kept.findLastIndex(({ byteLength }) => byteLength >= bytes);
    const [kept] = at === -1 ? [] : this.#kept.splice(at, 1);
    if (kept !== undefined) this.#keptBytes -= kept.byteLength;
    return new Uint8Array(kept ?? new ArrayBuffer(Math.ceil(bytes / roundedTo) * roundedTo), 0, bytes);
  }

  /** Gives back memory from `take`: only once, and only when nothing reads or writes it any more. */
  give({ buffer }: Uint8Array): void {
    if (!(buffer instanceof ArrayBuffer) || this.#keptBytes + buffer.byteLength > keptBytesMax) return;
    this.#keptBytes += buffer.byteLength;
    this.#kept.push(buffer);
  }
}
