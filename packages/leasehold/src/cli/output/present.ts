import { toJson } from "./json.js";
import { printLine, printLines } from "./print.js";
import type { OutputFormat } from "../common/settings.js";
import { type Paint, paintFor } from "./ansi.js";

/** The result of a command, in each output format. */
export interface Presentation {
  /** Lines for humans. */
  readonly table: (paint: Paint, widthMax: number) => readonly string[];
  /** One document, or a list of them, which `ndjson` writes as one per line. */
  readonly document: unknown;
}

export function present(format: OutputFormat, { document, table }: Presentation): void {
  switch (format) {
    case "json":
      printLine(toJson(document, 2));
      break;
    case "ndjson":
      printLines([document].flat().map((each) => toJson(each)));
      break;
    case "table": {
      const { isTTY, columns } = process.stdout;
      printLines(table(paintFor(isTTY === true, process.env), isTTY && columns > 0 ? columns : Infinity));
      break;
    }
  }
}

/** A duration for humans: `850 ms`, `4.1 s`, `3 min 20 s`, `2 h 5 min`. */
export function shortTime(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}
