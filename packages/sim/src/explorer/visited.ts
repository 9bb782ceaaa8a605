/** Number of states in a chunk. Chunks let the table grow without copying. */
const chunkBits = 20;
const chunkSize = 1 << chunkBits;

/** The table grows when it is this full. */
const loadMax = 0.6;

/**
 * The states seen so far: a 64-bit fingerprint of each, and the state from which it was first reached. Two
 * states with the same fingerprint would be mistaken for one; among a hundred million states the odds of that
 * are one in 3,700.
 */
export class Visited {
  #size = 0;
  #table: Int32Array = new Int32Array(1 << 16).fill(-1);
  readonly #low: Int32Array[] = [];
  readonly #high: Int32Array[] = [];
  readonly #parent: Int32Array[] = [];

  get size(): number {
    return this.#size;
  }

  /** The new state's index; -1 when it is not new. */
  add(low: number, high: number, parent: number): number {
    if (this.#size >= this.#table.length * loadMax) this.#grow();
    const mask = this.#table.length - 1;
    let at = (low ^ Math.imul(high, 0x9e3779b1)) & mask;
    for (;;) {
      const index = this.#table[at]!;
      if (index === -1) break;
      if (this.lowOf(index) === low && this.highOf(index) === high) return -1;
      at = (at + 1) & mask;
    }
    const index = this.#size++;
    const within = index & (chunkSize - 1);
    if (within === 0)
      for (const column of [this.#low, this.#high, this.#parent]) column.push(new Int32Array(chunkSize));
    const chunk = index >>> chunkBits;
    this.#low[chunk]![within] = low;
    this.#high[chunk]![within] = high;
    this.#parent[chunk]![within] = parent;
    this.#table[at] = index;
    return index;
  }

  lowOf(index: number): number {
    return this.#low[index >>> chunkBits]![index & (chunkSize - 1)]!;
  }

  highOf(index: number): number {
    return this.#high[index >>> chunkBits]![index & (chunkSize - 1)]!;
  }

  parentOf(index: number): number {
    return this.#parent[index >>> chunkBits]![index & (chunkSize - 1)]!;
  }

  #grow(): void {
    const larger = new Int32Array(this.#table.length * 2).fill(-1);
    const mask = larger.length - 1;
    for (let index = 0; index < this.#size; index += 1) {
      let at = (this.lowOf(index) ^ Math.imul(this.highOf(index), 0x9e3779b1)) & mask;
      while (larger[at] !== -1) at = (at + 1) & mask;
      larger[at] = index;
    }
    this.#table = larger;
  }
}

/** Rows of equal width, one after another: the states of one depth of the search. */
export class Rows {
  readonly #width: number;
  readonly #chunks: Int32Array[] = [];
  #size = 0;

  constructor(width: number) {
    this.#width = width;
  }

  get size(): number {
    return this.#size;
  }

  push(row: Int32Array): void {
    const within = this.#size & (rowsPerChunk - 1);
    if (within === 0) this.#chunks.push(new Int32Array(rowsPerChunk * this.#width));
    this.#chunks[Math.floor(this.#size / rowsPerChunk)]!.set(row, within * this.#width);
    this.#size += 1;
  }

  read(index: number, into: Int32Array): void {
    const start = (index & (rowsPerChunk - 1)) * this.#width;
    into.set(this.#chunks[Math.floor(index / rowsPerChunk)]!.subarray(start, start + this.#width));
  }
}

const rowsPerChunk = 1 << 14;
