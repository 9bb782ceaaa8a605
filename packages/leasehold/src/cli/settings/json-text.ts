import type { ConfigFault } from "../common/config-faults.js";

/** A value and the line on which it begins. */
export interface Placed {
  readonly line: number;
  readonly value: string | number | boolean | null | readonly Placed[] | ReadonlyMap<string, Placed>;
}

/** The maximum depth; no configuration is nested deeper. */
const depthMax = 16;

/** A string; `JSON.parse` then checks its content. */
const quotedText = /"[^"\\]*(?:\\.[^"\\]*)*"/y;

class Unreadable extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

/**
 * Reads JSON. Unlike `JSON.parse`, reports duplicate keys, and the line of each fault.
 *
 * @returns the value, if it is JSON, and the faults.
 */
export function readJson(text: string, path: string): { root?: Placed; faults: readonly ConfigFault[] } {
  const faults: ConfigFault[] = [];
  const reader = new Reader(text.replace(/^\uFEFF/, ""), (line, key) =>
    faults.push({
      code: "CONFIG_DUPLICATE",
      where: `${path}:${line}`,
      message: `"${key}" stands here again`,
    }),
  );
  try {
    return { root: reader.read(), faults };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const where = `${path}:${error.line}`;
    return { faults: [...faults, { code: "CONFIG_SYNTAX", where, message: error.message }] };
  }
}

class Reader {
  readonly #text: string;
  readonly #repeated: (line: number, key: string) => void;
  #at = 0;
  #line = 1;

  constructor(text: string, repeated: (line: number, key: string) => void) {
    this.#text = text;
    this.#repeated = repeated;
  }

  read(): Placed {
    const root = this.#value(0);
    if (this.#peek() !== "") throw this.#unexpected("the end of the file");
    return root;
  }

  #value(depth: number): Placed {
    const next = this.#peek();
    const line = this.#line;
    if (depth > depthMax) throw new Unreadable(line, "it is nested too deeply");
    if (next === "{") return { line, value: this.#object(depth) };
    if (next === "[") return { line, value: this.#list(depth) };
    if (next === '"') return { line, value: this.#string() };
    const [word = ""] =
      /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])/.exec(
        this.#text.slice(this.#at, this.#at + 64),
      ) ?? [];
    if (word === "") throw this.#unexpected("a value");
    this.#at += word.length;
    return { line, value: JSON.parse(word) as number | boolean | null };
  }

  #object(depth: number): ReadonlyMap<string, Placed> {
    const found = new Map<string, Placed>();
    this.#at += 1;
    while (this.#peek() !== "}") {
      if (found.size > 0) this.#comma("}");
      if (this.#peek() !== '"') throw this.#unexpected("a key in double quotes");
      const line = this.#line;
      const key = this.#string();
      if (this.#peek() !== ":") throw this.#unexpected(`":" after "${key}"`);
      this.#at += 1;
      if (found.has(key)) this.#repeated(line, key);
      found.set(key, { ...this.#value(depth + 1), line });
    }
    this.#at += 1;
    return found;
  }

  #list(depth: number): readonly Placed[] {
    const found: Placed[] = [];
    this.#at += 1;
    while (this.#peek() !== "]") {
      if (found.length > 0) this.#comma("]");
      found.push(this.#value(depth + 1));
    }
    this.#at += 1;
    return found;
  }

  #comma(end: string): void {
    if (this.#peek() !== ",") throw this.#unexpected(`"," or "${end}"`);
    this.#at += 1;
    if (this.#peek() === end) throw new Unreadable(this.#line, `JSON has no comma before "${end}"`);
  }

  #string(): string {
    quotedText.lastIndex = this.#at;
    const [quoted = ""] = quotedText.exec(this.#text) ?? [];
    try {
      const value = JSON.parse(quoted) as string;
      this.#at += quoted.length;
      return value;
    } catch {
      throw new Unreadable(this.#line, "this text has no end on its line, or an unknown escape");
    }
  }

  /** The next character that is not white space; empty at the end. */
  #peek(): string {
    for (; /^[ \t\r\n]$/.test(this.#text.charAt(this.#at)); this.#at += 1)
      if (this.#text[this.#at] === "\n") this.#line += 1;
    return this.#text.charAt(this.#at);
  }

  #unexpected(expected: string): Unreadable {
    const rest = this.#text.slice(this.#at);
    if (/^(?:\/[/*]|#)/.test(rest))
      return new Unreadable(this.#line, 'JSON has no comments; write "$comment": "…" instead');
    const found =
      rest === "" ? "the file ends" : `here is ${JSON.stringify(/^\S+/.exec(rest)![0].slice(0, 20))}`;
    return new Unreadable(this.#line, `${found}, and ${expected} was expected`);
  }
}
