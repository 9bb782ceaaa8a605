import { writeSync } from "node:fs";

export const STDOUT = 1;
export const STDERR = 2;
/**
 * The number of attempts to write to a full pipe. After that the line is dropped, so that the lease is not
 * lost.
 */
const WRITE_TRIES = 200;
const RETRY_MS = 5;

/** Why standard output could not be written, unless its reader has exited. */
let fault: string | undefined;

export function outputFault(): string | undefined {
  return fault;
}

/** True if the reader has exited (`leasehold ls | head -1`), which is not a fault. */
export function write(fd: number, text: string): boolean {
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

/** Writes a line of the log. */
export function printErrorLine(line: string): void {
  write(STDERR, `${line}\n`);
}
