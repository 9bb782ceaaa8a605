import type { Steps } from "../../../state/steps.js";
import { NoJson } from "./json-values.js";

/** Bound of the nesting depth: deeper than any request, and safe for the stack. */
const depthMax = 256;

/** Longer numbers have no meaning here, and are slow to convert. */
export const numberLengthMax = 100;

/** Number of values in one step. */
const valuesPerStep = 64;

const numberForm = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const literals = { true: true, false: false, null: null } as const;

/** Reads a JSON text from beginning to end, in steps, as megabytes take long. */
export class JsonReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The next character; empty at the end. */
  get next(): string {
    let code = this.#text.charCodeAt(this.#at);
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09)
      code = this.#text.charCodeAt((this.#at += 1));
    return this.#text.charAt(this.#at);
  }

  /** @throws NoJson */
  string(): string {
    this.#take('"');
    const start = this.#at;
    let end = this.#text.indexOf('"', start);
    while (end >= 0 && this.#isEscaped(start, end)) end = this.#text.indexOf('"', end + 1);
    if (end < 0) throw new NoJson("unexpected EOF");
    this.#at = end + 1;
    const raw = this.#text.slice(start, end);
    // No escapes, and no control characters, which are refused.
    if (!/[^ -\uffff]|\\/.test(raw)) return raw;
    try {
      return JSON.parse(`"${raw}"`) as string;
    } catch (error) {
      throw new NoJson((error as Error).message);
    }
  }

  #isEscaped(start: number, end: number): boolean {
    let backslashes = 0;
    while (end - backslashes > start && this.#text.charAt(end - backslashes - 1) === "\\") backslashes += 1;
    return backslashes % 2 === 1;
  }

  /**
   * Returns a number as text, since JavaScript would round integers of more than 15 digits.
   *
   * @throws NoJson
   */
  number(): string {
    const { next } = this;
    numberForm.lastIndex = this.#at;
    const [found] = numberForm.exec(this.#text) ?? [];
    if (found === undefined) throw this.#unexpected(next);
    if (found.length > numberLengthMax) throw new NoJson(`a number of ${found.length} characters`);
    this.#at += found.length;
    return found;
  }

  /** @throws NoJson */
  literal(): boolean | null {
    const { next } = this;
    for (const [word, value] of Object.entries(literals))
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    throw this.#unexpected(next);
  }

  /**
   * Reads the members of an object: `read` reads or skips each value.
   *
   * @throws NoJson
   */
  *members(read: (name: string) => Steps<void>): Steps<void> {
    this.#enter("{");
    if (this.next === "}") this.#at += 1;
    else
      do {
        const name = this.string();
        this.#take(":");
        yield* read(name);
        if (this.#isStep()) yield;
      } while (this.#goesOn("}"));
    this.#depth -= 1;
  }

  /**
   * Reads the items of a list in the same way.
   *
   * @throws NoJson
   */
  *items(read: () => Steps<void>): Steps<void> {
    this.#enter("[");
    if (this.next === "]") this.#at += 1;
    else
      do {
        yield* read();
        if (this.#isStep()) yield;
      } while (this.#goesOn("]"));
    this.#depth -= 1;
  }

  /**
   * Skips a value, but refuses invalid JSON.
   *
   * @throws NoJson
   */
  *passOver(): Steps<void> {
    const { next } = this;
    if (next === "{") yield* this.members(() => this.passOver());
    else if (next === "[") yield* this.items(() => this.passOver());
    else if (next === '"') this.string();
    else if (/[-\d]/.test(next)) this.number();
    else this.literal();
  }

  /**
   * Requires the end of the text.
   *
   * @throws NoJson
   */
  end(): void {
    const { next } = this;
    if (next !== "") throw this.#unexpected(next);
  }

  #isStep(): boolean {
    this.#values += 1;
    return this.#values % valuesPerStep === 0;
  }

  #enter(character: string): void {
    this.#take(character);
    this.#depth += 1;
    if (this.#depth > depthMax) throw new NoJson("exceeded max depth");
  }

  #goesOn(close: string): boolean {
    const { next } = this;
    if (next !== "," && next !== close) throw this.#unexpected(next);
    this.#at += 1;
    return next === ",";
  }

  #take(character: string): void {
    const { next } = this;
    if (next !== character) throw this.#unexpected(next);
    this.#at += 1;
  }

  #unexpected(character: string): NoJson {
    return new NoJson(character === "" ? "unexpected EOF" : `invalid character ${JSON.stringify(character)}`);
  }
}
