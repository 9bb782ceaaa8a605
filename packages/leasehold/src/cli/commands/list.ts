import type { ResourceHint } from "../../lease/types.js";
import { withLeases } from "../common/connection.js";
import { exitCode } from "../common/exit-codes.js";
import type { Paint } from "../output/ansi.js";
import { printable } from "../output/cells.js";
import { type Presentation, present, shortTime } from "../output/present.js";
import { type Column, tableLines } from "../output/table.js";
import { printError, printLines } from "../output/print.js";
import { type SharedOptions, settingsOf } from "../common/settings.js";
import { confirmedText, leaseView } from "./lease-view.js";

const COLUMNS: readonly Column[] = [
  { title: "RESOURCE", shrinks: true },
  { title: "HOLDER", shrinks: true },
  { title: "TOKEN", align: "right" },
  { title: "TIME LEFT", align: "right" },
  { title: "SEEN" },
];
const LABEL: Column = { title: "LABEL", shrinks: true };

export interface ListCommandOptions extends SharedOptions {
  readonly names?: boolean;
}

/** `leasehold ls [PREFIX]`. */
export async function list(prefix: string, options: ListCommandOptions): Promise<number> {
  const settings = settingsOf(options);
  // An incomplete list is better than none, as long as it is marked.
  const found = await withLeases(settings, (leases) =>
    leases.list(prefix, { timeout: settings.timeoutMs, onIncomplete: printError }),
  );
  if (options.names === true) printLines(found.map(({ resource }) => printable(resource)));
  else present(settings.output, presentLeases(found, prefix));
  return exitCode("ok");
}

export function presentLeases(found: readonly ResourceHint[], prefix: string): Presentation {
  const sorted = [...found].sort((a, b) => (a.resource < b.resource ? -1 : 1));
  const views = sorted.map(leaseView);
  return {
    document: views,
    table: (paint: Paint, widthMax: number) => {
      if (sorted.length === 0)
        return [prefix === "" ? "no lease is held" : `no lease below ${prefix} is held`];
      const labelled = sorted.some(({ label }) => label !== undefined);
      const rows = sorted.map((hint) => [
        { text: hint.resource, style: "bold" as const },
        { text: hint.holder ?? "-" },
        { text: hint.token === undefined ? "-" : String(hint.token), style: "cyan" as const },
        { text: hint.remainingMs === undefined ? "-" : shortTime(hint.remainingMs) },
        {
          text: confirmedText(hint.confirmed),
          style: hint.confirmed === true ? ("green" as const) : ("dim" as const),
        },
        ...(labelled ? [{ text: hint.label ?? "" }] : []),
      ]);
      return tableLines(labelled ? [...COLUMNS, LABEL] : COLUMNS, rows, paint, widthMax);
    },
  };
}
