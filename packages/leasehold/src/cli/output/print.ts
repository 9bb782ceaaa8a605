import { isatty } from "node:tty";
import { printable } from "./cells.js";
import type { ErrorCodes } from "../common/failure.js";
import { STDERR, STDOUT, write } from "../common/write.js";
import { toJson } from "./json.js";

/** Standard error has JSON objects, one a line. */
let isJson = false;

/** From now on messages on standard error are JSON. */
export function printErrorsAsJson(): void {
  isJson = true;
}

/**
 * Prints an error, or without codes a note. Writes directly to the descriptor: `process.stderr` would put a
 * shared pipe into non-blocking mode, and the child of `run`, which inherits the same pipe, would then fail
 * with EAGAIN.
 */
export function printError(message: string, codes?: ErrorCodes): void {
  const type = codes === undefined ? "note" : "error";
  const line = isJson ? toJson({ type, ...codes, message }) : `leasehold: ${printable(message)}`;
  write(STDERR, `${line}\n`);
}

/** Writes whole lines to the standard output; false when its reader has exited. */
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

/** A line that the next one replaces, on a terminal; empty: removes it. */
export function printProgress(line: string): void {
  if (isSeen()) write(STDERR, `\r\u001b[K${line}`);
}
