/** What a file says: parsed again only when its bytes are others. */
export class ReadOnce<Content> {
  readonly #parse: (bytes: Buffer) => Content;
  #last: { readonly bytes: Buffer; readonly content: Content } | undefined;

  constructor(parse: (bytes: Buffer) => Content) {
    this.#parse = parse;
  }

  /** Of what could be parsed last. */
  get last(): Content | undefined {
    return this.#last?.content;
  }

  /** @throws what parsing throws: what was there before stays */
  of(bytes: Buffer): Content {
    if (this.#last?.bytes.equals(bytes) !== true) this.#last = { bytes, content: this.#parse(bytes) };
    return this.#last.content;
  }
}
