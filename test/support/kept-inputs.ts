import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * Inputs that a fuzz test keeps: each reached a branch that no smaller one reaches, or once broke something.
 * A file has lines that begin with `#` and give the reason, then `-> ` and the outcome, then the bytes: as
 * hex, or as JSON strings with one character for each byte.
 */
export interface KeptInput {
  readonly name: string;
  readonly outcome: string;
  readonly bytes: Buffer;
}

export class KeptInputs {
  readonly #folder: string;
  readonly all: readonly KeptInput[];

  /** @param folder as a URL, with a slash at its end */
  constructor(folder: URL) {
    this.#folder = fileURLToPath(folder);
    const names = existsSync(this.#folder) ? readdirSync(this.#folder).sort() : [];
    this.all = names.map((name) => this.#read(name));
  }

  /** True if `KEEP_INPUTS=1` in the environment asks for new inputs to be kept. */
  get isLooking(): boolean {
    return process.env["KEEP_INPUTS"] === "1";
  }

  /** If asked for, writes one file for each outcome that no kept input has. */
  keep(found: ReadonlyMap<string, Buffer>): void {
    if (!this.isLooking) return;
    mkdirSync(this.#folder, { recursive: true });
    const known = new Set(this.all.map(({ outcome }) => outcome));
    for (const [outcome, bytes] of found) {
      if (known.has(outcome)) continue;
      const name = outcome
        .toLowerCase()
        .replaceAll(/[^a-z0-9]+/g, "-")
        .replaceAll(/^-|-$/g, "");
      writeFileSync(
        `${this.#folder}${name}.txt`,
        `# Found by the fuzz test.\n-> ${outcome}\n${linesOf(bytes)}`,
      );
    }
  }

  #read(name: string): KeptInput {
    const lines = readFileSync(this.#folder + name, "utf8").split("\n");
    const outcome = lines.find((line) => line.startsWith("-> "))?.slice(3);
    if (outcome === undefined) throw new Error(`${name} has no line with an outcome`);
    return { name, outcome, bytes: Buffer.concat(lines.map(bytesOf)) };
  }
}

function bytesOf(line: string): Buffer {
  if (line.startsWith('"')) return Buffer.from(JSON.parse(line) as string, "latin1");
  return /^[0-9a-f ]+$/.test(line) ? Buffer.from(line.replaceAll(" ", ""), "hex") : Buffer.alloc(0);
}

/** Lines of JSON strings for text, and hex for anything else. */
function linesOf(bytes: Buffer): string {
  const printable = bytes.filter((byte) => (byte >= 32 && byte < 127) || byte === 10 || byte === 13).length;
  if (printable < 0.8 * bytes.length || bytes.length < 8) return hexOf(bytes);
  const lines = bytes.toString("latin1").split(/(?<=\n)/);
  return lines.map((line) => `${asciiJson(line)}\n`).join("");
}

function asciiJson(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[^ -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** 32 bytes a line, in groups of four. */
function hexOf(bytes: Buffer): string {
  const groups = bytes.toString("hex").match(/.{1,8}/g) ?? [];
  const lines: string[] = [];
  for (let at = 0; at < groups.length; at += 8) lines.push(`${groups.slice(at, at + 8).join(" ")}\n`);
  return lines.join("");
}

/** The shortest input with the same outcome that is found by leaving out parts. */
export function shrunk(bytes: Buffer, isSame: (shorter: Buffer) => boolean): Buffer {
  let best = bytes;
  for (let size = best.length >> 1; size > 0; size >>= 1)
    for (let at = 0; at + size <= best.length;) {
      const shorter = Buffer.concat([best.subarray(0, at), best.subarray(at + size)]);
      if (isSame(shorter)) best = shorter;
      else at += size;
    }
  return best;
}
