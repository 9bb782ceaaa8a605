import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import type { CallEntry } from "./calls.js";

/** The calls of a client as JSON lines, in the order in which they returned. */
export class CallJournal {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, "ax");
  }

  write(entry: CallEntry): void {
    writeSync(this.#file, `${JSON.stringify(entry)}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}

export function readCalls(path: string): CallEntry[] {
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as CallEntry);
}
