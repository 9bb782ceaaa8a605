/** Caches a file's parsed content until its bytes change. */
export class ReadOnce<Content> {
  readonly #parse: (bytes: Buffer) => Content;
  #last: { readonly bytes: Buffer; readonly content: Content } | undefined;

  constructor(parse: (bytes: Buffer) => Content) {
    this.#parse = parse;
  }

  /** The last content that could be parsed. */
  get last(): Content | undefined {
    return this.#last?.content;
  }

  /** @throws the parser's error, and keeps the earlier content */
  of(bytes: Buffer): Content {
    if (this.#last?.bytes.equals(bytes) !== true) this.#last = { bytes, content: this.#parse(bytes) };
    return this.#last.content;
  }
}
