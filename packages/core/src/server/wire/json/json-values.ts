const heldBytesMin = 256;

/** A text is not a JSON object, or too long. */
export class NoJson extends Error {
  constructor(text: string) {
    super(text);
    this.name = "NoJson";
  }
}

const [quote, backslash, open, close] = [...'"\\{}'].map((character) => character.charCodeAt(0));

/** Splits a sequence of JSON objects, with or without space between them, that arrives in any pieces. */
export class JsonValues {
  readonly #bytesMax: number;
  readonly #tooLong: string;
  /** The unfinished object, in one buffer: small pieces take at most twice their bytes. */
  #held: Buffer = Buffer.alloc(0);
  #bytes = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  /**
   * @param bytesMax bound of an unfinished object
   * @param tooLong the error's text for a longer one
   */
  constructor(bytesMax: number, tooLong: string) {
    this.#bytesMax = bytesMax;
    this.#tooLong = tooLong;
  }

  /**
   * Returns the objects completed by this piece, as text.
   *
   * @param most number of objects after which the rest is ignored
   * @throws NoJson
   */
  take(piece: Buffer, most = Infinity): string[] {
    const found: string[] = [];
    let from = 0;
    for (let at = 0; at < piece.length; at += 1) {
      if (!this.#endsWith(piece[at]!)) continue;
      found.push(this.#whole(piece.subarray(from, at + 1)));
      from = at + 1;
      if (found.length === most) return found;
    }
    if (this.#depth === 0) return found;
    if (this.#bytes + piece.length - from > this.#bytesMax) throw new NoJson(this.#tooLong);
    this.#keep(piece.subarray(from));
    return found;
  }

  #whole(last: Buffer): string {
    if (this.#bytes === 0) return last.toString();
    this.#keep(last);
    const text = this.#held.toString("utf8", 0, this.#bytes);
    this.#held = Buffer.alloc(0);
    this.#bytes = 0;
    return text;
  }

  #keep(piece: Buffer): void {
    const bytes = this.#bytes + piece.length;
    if (bytes > this.#held.length) {
      const wider = Buffer.allocUnsafeSlow(Math.max(heldBytesMin, 2 * this.#bytes, bytes));
      this.#held.copy(wider, 0, 0, this.#bytes);
      this.#held = wider;
    }
    piece.copy(this.#held, this.#bytes);
    this.#bytes = bytes;
  }

  /** Memory of the unfinished object. */
  get heldBytes(): number {
    return this.#held.length;
  }

  /** Requires that no object is unfinished. */
  end(): void {
    if (this.#depth > 0) throw new NoJson("unexpected EOF");
  }

  /** Whether an object ends with this byte. */
  #endsWith(byte: number): boolean {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === backslash) this.#isEscaped = true;
      else if (byte === quote) this.#isInString = false;
      return false;
    }
    if (byte === open) this.#depth += 1;
    else if (this.#depth === 0) {
      const character = String.fromCharCode(byte);
      if (/\S/.test(character)) throw new NoJson(`invalid character ${JSON.stringify(character)}`);
    } else if (byte === quote) this.#isInString = true;
    else if (byte === close) this.#depth -= 1;
    return byte === close && this.#depth === 0;
  }
}
