/**
 * A command's words and environment as raw bytes. Node decodes both as UTF-8 and replaces invalid bytes with
 * U+FFFD; Linux has the original bytes under /proc. Strings here have one character for each byte ("latin1").
 */
import { isUtf8 } from "node:buffer";
import { readFileSync } from "node:fs";
import { isBehind } from "./front.js";

export interface CommandBytes {
  readonly words: readonly string[];
  /** The variables that a shell or Node would not pass on unchanged, as `NAME=value`. */
  readonly variables: readonly string[];
}

const NUL = "\0";
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*=/;

/** Text from the program itself as UTF-8 bytes. */
export function bytesOf(words: readonly string[]): CommandBytes {
  return { words: words.map((word) => Buffer.from(word).toString("latin1")), variables: [] };
}

/** The raw bytes of this process's last words, which Node decoded to `words`. */
export function ownCommandBytes(words: readonly string[]): CommandBytes {
  const given = split("cmdline").slice(-words.length);
  const isSame = given.length === words.length && given.every((word, at) => decoded(word) === words[at]);
  const variables = split("environ").filter(
    (entry) => entry.indexOf("=") > 0 && !(IDENTIFIER.test(entry) && isValid(entry)),
  );
  return isSame ? { words: given, variables } : { ...bytesOf(words), variables };
}

/** The position, from 1, of the first word before `--` that is not UTF-8; `undefined` if all are. */
export function firstUnreadableWord(words: readonly string[]): number | undefined {
  const end = words.indexOf("--");
  const given = words.length === 0 ? [] : split("cmdline").slice(-words.length);
  const at = given.slice(0, end === -1 ? given.length : end).findIndex((word) => !isValid(word));
  return at === -1 ? undefined : at + 1;
}

/** Reads the front's file in /proc, because the process behind has only decoded values. */
function split(file: "cmdline" | "environ"): string[] {
  try {
    const text = readFileSync(`/proc/${isBehind() ? process.ppid : "self"}/${file}`, "latin1");
    return (text.endsWith(NUL) ? text.slice(0, -1) : text).split(NUL);
  } catch {
    return []; // Not Linux.
  }
}

function isValid(word: string): boolean {
  return isUtf8(Buffer.from(word, "latin1"));
}

function decoded(word: string): string {
  return Buffer.from(word, "latin1").toString("utf8");
}
