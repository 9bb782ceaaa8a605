import { isatty } from "node:tty";
import { printable } from "./cells.js";
import type { ErrorCodes } from "../common/failure.js";
import { STDERR, STDOUT, write } from "../common/write.js";
import { toJson } from "./json.js";

/** Whether standard error gets JSON objects, one per line. */
let isJson = false;

/** From now on messages on standard error are JSON. */
export function printErrorsAsJson(): void {
  isJson = true;
}

/**
 * Prints an error or, without codes, a note. Writes directly to the descriptor: `process.stderr` would put a
 * shared pipe into non-blocking mode, and the child of `run`, which inherits the same pipe, would then fail
 * with EAGAIN.
 */
export function printError(message: string, codes?: ErrorCodes): void {
  const type = codes === undefined ? "note" : "error";
  const line = isJson ? toJson({ type, ...codes, message }) : `leasehold: ${printable(message)}`;
  write(STDERR, `${line}\n`);
}

/** Writes whole lines to standard output; returns false if its reader has exited. */
export function printLines(lines: readonly string[]): boolean {
  return lines.length === 0 || write(STDOUT, `${lines.join("\n")}\n`);
}

export function printLine(line: string): boolean {
  return printLines([line]);
}

/** Whether {@link printProgress} is visible. */
export function isSeen(): boolean {
  return isatty(STDERR) && !isJson;
}

/** On a terminal, prints a line that the next one replaces. An empty text removes the line. */
export function printProgress(line: string): void {
  if (isSeen()) write(STDERR, `\r\u001b[K${line}`);
}
