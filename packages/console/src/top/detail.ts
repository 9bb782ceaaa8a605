import { type Paint, clockTime, drainingBar, pad, printable, toJson } from "leasehold/cli";
import type { Explanation } from "leasehold";
import type { LeaseView, TenureView } from "../record/messages.js";
import { shortHolder } from "../record/holder.js";
import { tenths } from "./times.js";

/** The result of the queries about one lease. */
export interface Detail {
  readonly name: string;
  readonly lease: LeaseView | undefined;
  /** Absent until the first answer. */
  readonly explanation?: Explanation;
  /** Why there is no newer answer. */
  readonly failure?: string;
  readonly tenures: readonly TenureView[];
}

const barCells = 24;
const tenuresShown = 20;
const dataShown = 1_000;

/** The details of a lease, as lines of any width. */
export function detailLines(
  detail: Detail | undefined,
  chosen: string | undefined,
  nowMs: number,
  paint: Paint,
): string[] {
  if (chosen === undefined) return ["", paint("dim", "choose a lease: ↑ ↓")];
  const title = paint("bold", printable(chosen));
  if (detail === undefined || detail.name !== chosen) return [title, "", paint("dim", "asking …")];
  const { explanation, failure } = detail;
  return [
    title,
    ...(failure === undefined ? [] : [paint("red", printable(failure))]),
    ...(explanation === undefined ? [] : told(explanation, detail, nowMs, paint)),
    ...tenureLines(detail.tenures, nowMs, paint),
  ];
}

function told(explanation: Explanation, { lease }: Detail, nowMs: number, paint: Paint): string[] {
  const { state, holder = "", label, token, waiting, data, reasons, members, broken } = explanation;
  const fact = (name: string, value: string) => `${paint("dim", pad(name, 11))}${value}`;
  const words = { held: "held", free: "free", unknown: "unknown: too few answers, or they differ" }[state];
  const lines = [paint(state === "held" ? "green" : "yellow", words)];
  if (state === "held") {
    lines.push(fact("holder", printable(holder)));
    if (label !== undefined) lines.push(fact("says it is", printable(label)));
    lines.push(fact("token", String(token)));
    if (lease !== undefined) {
      const older = lease.isOlder === true ? "before " : "";
      lines.push(fact("since", `${older}${clockTime(lease.sinceMs)}, ${tenths(nowMs - lease.sinceMs)}`));
      const leftMs = Math.max(0, lease.endsMs - nowMs);
      const bar = drainingBar(lease.spanMs === 0 ? 0 : leftMs / lease.spanMs, barCells);
      lines.push(fact("time left", `${paint("green", bar)} ${tenths(leftMs)}, unless it is renewed`));
    }
    lines.push(fact("waiting", waiting === 0 ? "nobody" : String(waiting)));
    if (broken) lines.push(paint("red", "It was broken: it cannot be renewed, and is free at its end."));
  }
  if (data !== undefined) lines.push(fact("data", printable(toJson(data)).slice(0, dataShown)));
  if (reasons.length > 0) lines.push("", paint("dim", "WHY"));
  for (const reason of reasons) lines.push(`  ${printable(reason)}`);
  if (members.length > 0) lines.push("", paint("dim", "WHAT EACH KEEPS OF IT"));
  for (const { id, state: at, reason, lease: kept } of members) {
    const what =
      kept === undefined
        ? printable(reason ?? at)
        : `${kept.state}, ${printable(shortHolder(kept.holder))}, ${tenths(kept.remainingMs)}`;
    lines.push(`  ${printable(id)}: ${what}`);
  }
  return lines;
}

const ends = {
  released: "released",
  "ran-out": "ran out",
  "passed-on": "another followed",
  ended: "released, or ran out",
} as const;

function tenureLines(tenures: readonly TenureView[], nowMs: number, paint: Paint): string[] {
  if (tenures.length === 0) return [];
  const newest = tenures.slice(-tenuresShown).toReversed();
  return [
    "",
    paint("dim", "TENURES, THE NEWEST FIRST"),
    ...newest.map(({ holder, token, sinceMs, untilMs, end }) => {
      const how = end === undefined ? "holds it" : ends[end];
      const long = tenths((untilMs ?? nowMs) - sinceMs);
      return `  ${clockTime(sinceMs)}  ${pad(long, 9, "right")}  ${printable(shortHolder(holder))}, ${token}, ${how}`;
    }),
  ];
}
