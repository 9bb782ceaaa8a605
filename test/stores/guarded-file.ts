import { appendFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type HistoryEntry,
  historyLine,
  historyVersion,
} from "../../packages/leasehold/src/testing/history/journals/format.js";
import type { Arena, Guard } from "../e2e/arena.js";

/**
 * A file that holders write to, like that of `examples/fenced-file.mjs`: each write carries a token, the file
 * contains the greatest one, and smaller ones are refused. Each decision is journaled before it is reported.
 */
export class GuardedFile implements Guard {
  readonly path: string;
  readonly #journal: string;
  #order = 0;
  accepted = 0;
  refused = 0;

  constructor(folder: string, run: Arena["run"]) {
    this.path = join(folder, "guarded");
    this.#journal = join(folder, "guard.journal");
    writeFileSync(
      this.#journal,
      historyLine({ event: "history", version: historyVersion, ...run, by: "guard" }),
    );
    writeFileSync(this.path, "0 nothing yet");
  }

  decide(resource: string, token: bigint): "accepted" | "refused" {
    const greatest = BigInt(readFileSync(this.path, "utf8").split(" ")[0]!);
    const event = token < greatest ? "refused" : "accepted";
    if (event === "accepted") {
      writeFileSync(`${this.path}.new`, `${token} write ${this.#order} of ${resource}`);
      renameSync(`${this.path}.new`, this.path);
    }
    this[event] += 1;
    this.#order += 1;
    const entry: HistoryEntry = { event, m: process.hrtime.bigint(), resource, token, order: this.#order };
    appendFileSync(this.#journal, historyLine(entry));
    return event;
  }
}
