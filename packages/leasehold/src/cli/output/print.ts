import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import { printable } from "./cells.js";
import type { ErrorCodes } from "../common/failure.js";
import { toJson } from "./json.js";

const STDOUT = 1;
const STDERR = 2;
/** Attempts to write to a full pipe; then the line is dropped, so that the lease is not. */
const WRITE_TRIES = 200;
const RETRY_MS = 5;

/** Why the standard output could not be written, except that its reader has exited. */
let fault: string | undefined;

export function outputFault(): string | undefined {
  return fault;
}

/** True when the reader has exited (`leasehold ls | head -1`), which is no fault. */
function write(fd: number, text: string): boolean {
  let rest = Buffer.from(text, "utf8");
  for (let tries = 0; rest.length > 0 && tries < WRITE_TRIES;) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EAGAIN") {
        tries += 1;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
        continue;
      }
      if (fd === STDOUT && code !== "EPIPE") fault ??= code;
      return false;
    }
  }
  return rest.length === 0;
}

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
