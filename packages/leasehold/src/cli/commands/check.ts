import { createReadStream } from "node:fs";
import type { FaultReport } from "../../testing/history/faults.js";
import { HistoryJudge } from "../../testing/history/judge.js";
import type { HistoryReport } from "../../testing/history/report.js";
import { type ExitName, exitCode } from "../common/exit-codes.js";
import { CommandFailure } from "../common/failure.js";
import type { Paint, Style } from "../output/ansi.js";
import { printable } from "../output/cells.js";
import { type Presentation, present, shortTime } from "../output/present.js";
import { tableLines } from "../output/table.js";
import { type SharedOptions, settingsOf } from "../common/settings.js";

const exits: Record<HistoryReport["verdict"], ExitName> = {
  clean: "ok",
  violated: "violation",
  void: "stuck",
};
const styles: Record<HistoryReport["verdict"], Style> = { clean: "green", violated: "red", void: "yellow" };

/** `leasehold check`: reads a run's journals one after the other, line by line, and judges them together. */
export async function check(paths: readonly string[], options: SharedOptions): Promise<number> {
  const { output } = settingsOf(options);
  const judge = new HistoryJudge();
  for (const path of paths) {
    const journal = judge.journal(path);
    for await (const piece of piecesOf(path)) journal.feed(piece);
    journal.end();
  }
  const report = judge.report();
  present(output, presentReport(report));
  return exitCode(exits[report.verdict]);
}

async function* piecesOf(path: string): AsyncGenerator<string> {
  try {
    yield* createReadStream(path, { encoding: "utf8" }) as AsyncIterable<string>;
  } catch (error) {
    throw new CommandFailure("unreadable", `${path}: ${(error as Error).message}`);
  }
}

function presentReport(report: HistoryReport): Presentation {
  const document = { ...report, tenures: report.tenures.length };
  return {
    document,
    table: (paint, widthMax) => [
      paint(styles[report.verdict], report.verdict),
      ...report.voidBecause,
      ...report.violations.map(({ rule, text }) => `${paint("red", rule)}: ${printable(text)}`),
      "",
      ...figureLines(report, paint),
      "",
      ...faultLines(report.faults, paint, widthMax),
    ],
  };
}

function figureLines(report: HistoryReport, paint: Paint): string[] {
  const { operations, decisions } = report;
  const rows: readonly (readonly [string, number])[] = [
    ["journals", report.journals],
    ["tenures", report.tenures.length],
    ["takeovers", report.takeovers],
    ["hand-overs", report.handovers],
    ["renewals", report.renewals],
    ["samples", report.samples],
    ["inconclusive pairs", report.inconclusive],
    ["losses found after a pause", report.lossesFoundAfterPause],
    ["operations accepted", operations.accepted],
    ["operations refused", operations.refused],
    ["operations without answer", operations.unknown],
    ["accepted by the resource", decisions.accepted],
    ["refused by the resource", decisions.refused],
    ["processes booted", report.boots],
    ["alarms", report.alarms],
    ["troubles", report.troubles],
  ];
  return tableLines(
    [{ title: "WHAT" }, { title: "HOW MANY", align: "right" }],
    rows.map(([what, count]) => [{ text: what }, { text: String(count) }]),
    paint,
  );
}

function faultLines(faults: readonly FaultReport[], paint: Paint, widthMax: number): string[] {
  if (faults.length === 0) return ["no faults"];
  return tableLines(
    [
      { title: "FAULT", shrinks: true },
      { title: "HOW MANY", align: "right" },
      { title: "INTERRUPTED", align: "right" },
      { title: "LONGEST WITHOUT A HOLDER", align: "right" },
    ],
    faults.map(({ kind, count, interrupted, longestMs }) => [
      { text: kind },
      { text: String(count) },
      { text: String(interrupted) },
      { text: longestMs === undefined ? "-" : shortTime(longestMs) },
    ]),
    paint,
    widthMax,
  );
}
