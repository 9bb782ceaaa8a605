import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import { printable } from "./cells.js";
import type { ErrorCodes } from "../common/failure.js";
import { toJson } from "./json.js";

const STDOUT = 1;
const STDERR = 2;
/**
 * A reader that is slow to empty its pipe is given this many turns; then the line is dropped rather than the
 * lease.
 */
const WRITE_TRIES = 200;
const RETRY_MS = 5;

/** Why something could not be written to the standard output, other than that its reader has gone. */
let fault: string | undefined;

export function outputFault(): string | undefined {
  return fault;
}

/**
 * True when the reader has gone (`leasehold ls | head -1`): nothing is wrong then, there is just nobody to
 * tell.
 */
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

/** Standard error has objects, one a line. */
let isJson = false;

/** From now on what is said on standard error is for programs. */
export function sayErrorsAsJson(): void {
  isJson = true;
}

/**
 * Says an error, or without codes a note. Writes straight to the descriptor: `process.stderr` would put a
 * shared pipe into non-blocking mode, and the child of `run`, which inherits the same pipe, would then fail
 * on it with EAGAIN.
 */
export function sayError(message: string, codes?: ErrorCodes): void {
  const type = codes === undefined ? "note" : "error";
  const line = isJson ? toJson({ type, ...codes, message }) : `leasehold: ${printable(message)}`;
  write(STDERR, `${line}\n`);
}

/** Writes whole lines to the standard output; false when its reader has gone. */
export function sayLines(lines: readonly string[]): boolean {
  return lines.length === 0 || write(STDOUT, `${lines.join("\n")}\n`);
}

export function sayLine(line: string): boolean {
  return sayLines([line]);
}

/** Whether people see what {@link sayProgress} says. */
export function isSeen(): boolean {
  return isatty(STDERR) && !isJson;
}

/** One line that the next one replaces, for people who wait at a terminal; empty: nothing is left of it. */
export function sayProgress(line: string): void {
  if (isSeen()) write(STDERR, `\r\u001b[K${line}`);
}
