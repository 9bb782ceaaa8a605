import { openSync, writeSync } from "node:fs";
import {
  type HistoryEntry,
  historyLine,
  historyVersion,
} from "../../packages/leasehold/src/testing/history/journals/format.js";
import { steadyClockOf } from "../support/steady-clock.js";

/** A journal. When `write` returns, the entry survives the death of this process. */
export class Journal {
  readonly #file: number;

  constructor(path: string, run: string, by: string) {
    this.#file = openSync(path, "ax");
    const clock = steadyClockOf("self");
    writeSync(this.#file, historyLine({ event: "history", version: historyVersion, run, clock, by }));
  }

  write(entry: HistoryEntry): void {
    writeSync(this.#file, historyLine(entry));
  }
}

export function nowNs(): bigint {
  return process.hrtime.bigint();
}
