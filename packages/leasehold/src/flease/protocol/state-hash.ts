/**
 * A 64-bit running hash of protocol state, for explorers that must recognise a state they have seen. Two
 * lanes of FNV-1a with different offsets over 32-bit words; not for security.
 */
export class StateHash {
  #low = 0x811c9dc5;
  #high = 0x9e3779b9;
  static readonly #float = new Float64Array(1);
  static readonly #words = new Uint32Array(StateHash.#float.buffer);

  number(value: number): this {
    StateHash.#float[0] = value;
    this.#word(StateHash.#words[0]!);
    this.#word(StateHash.#words[1]!);
    return this;
  }

  text(value: string): this {
    this.#word(value.length);
    for (let index = 0; index < value.length; index += 1) this.#word(value.charCodeAt(index));
    return this;
  }

  flag(value: boolean): this {
    this.#word(value ? 1 : 2);
    return this;
  }

  digest(): string {
    const hex = (word: number) => (word >>> 0).toString(16).padStart(8, "0");
    return hex(this.#high) + hex(this.#low);
  }

  #word(word: number): void {
    this.#low = Math.imul(this.#low ^ word, 0x01000193);
    this.#low ^= this.#low >>> 15;
    this.#high = Math.imul(this.#high ^ word, 0x85ebca6b);
    this.#high ^= this.#high >>> 13;
  }
}
