import {
  type Cell,
  type Column,
  type Paint,
  cellsOf,
  clockTime,
  cut,
  drainingBar,
  pad,
  printable,
  tableLines,
  unpainted,
} from "leasehold/cli";
import { shortHolder } from "../record/holder.js";
import type { EventView, GroundView, LeaseView, PartView } from "../record/messages.js";
import { type Detail, detailLines } from "./detail.js";
import type { HolderRow } from "./lists.js";
import { type TopState, views } from "./state.js";
import { tenths } from "./times.js";

/** The data that the screen shows. `TopState` is what its user has chosen. */
export interface TopScene {
  readonly nowMs: number;
  readonly endpoints: string;
  readonly ground: GroundView | undefined;
  /** Why the data may be out of date. */
  readonly trouble: string | undefined;
  /** The number of all leases, ignoring the filter. */
  readonly total: number;
  /** In their order when they were last sorted; their ends may have moved since. */
  readonly leases: readonly LeaseView[];
  readonly latest: (name: string) => LeaseView | undefined;
  readonly holders: readonly HolderRow[];
  /** Oldest first. */
  readonly events: readonly EventView[];
  /** The changes in each of the last seconds, oldest first. */
  readonly rates: readonly number[];
  /** Details of the chosen lease. */
  readonly detail: Detail | undefined;
}

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

const headRows = 4;
const footRows = 1;
/** From these sizes on, details of a lease fit beside the list, and events below it. */
const wideColumns = 140;
const detailColumns = 70;
const tallRows = 20;

/** The number of list rows that the screen shows. */
export function pageOf(size: Size, state: TopState): number {
  return Math.max(1, size.rows - headRows - footRows - 1 - newsRows(size, state));
}

/** Whether the details of the chosen lease are visible. */
export function showsDetail(size: Size, { view, isOpen }: TopState): boolean {
  return view === "leases" && (isOpen || size.columns >= wideColumns);
}

/** The number of rows for events below a list, with their title. */
function newsRows({ rows }: Size, { view, isOpen }: TopState): number {
  if (view === "events" || isOpen || rows < tallRows) return 0;
  return Math.max(5, Math.floor(rows / 4));
}

/** The whole screen: as many lines as it has rows, none wider than the screen. */
export function topLines(scene: TopScene, state: TopState, size: Size, paint: Paint): string[] {
  const width = Math.max(1, size.columns - 1);
  const room = Math.max(0, size.rows - headRows - footRows);
  const body = state.isHelp ? helpLines(paint) : bodyLines(scene, state, { size, width, room, paint });
  const filled = Array.from({ length: room }, (_, at) => body[at] ?? "");
  const lines = [...headLines(scene, state, width, paint), ...filled, footLine(state, width, paint)];
  // On a very small screen the last lines matter most, as they list the keys.
  return lines.slice(-size.rows).map((line) => fit(line, width));
}

/** Cuts a line that is too wide; such a line loses its colours. */
function fit(line: string, width: number): string {
  return cellsOf(line) <= width ? line : cut(unpainted(line), width);
}

function headLines(scene: TopScene, state: TopState, width: number, paint: Paint): string[] {
  const { ground, trouble, nowMs, total, leases, endpoints } = scene;
  const clock = clockTime(nowMs);
  const title = cut(`Leasehold · ${printable(endpoints)}`, Math.max(0, width - clock.length - 2));
  const sum = ground === undefined ? "asking …" : ground.summary;
  const able = ground === undefined || ground.isAble ? "" : "; no lease can be had now";
  const shown = state.filter === "" ? "" : `, ${leases.length} shown`;
  const last = scene.rates.slice(-10);
  const rate = last.reduce((all, each) => all + each, 0) / Math.max(1, last.length);
  const counts = `${total} ${total === 1 ? "lease" : "leases"}${shown}, ${rate.toFixed(1)} changes a second `;
  const spark = sparkline(scene.rates.slice(-Math.max(0, width - cellsOf(counts))));
  const groundLine =
    trouble !== undefined
      ? paint("red", cut(`what is shown may be old: ${printable(trouble)}`, width))
      : paint(ground?.isAble === false ? "red" : "green", cut(printable(sum) + able, width));
  return [
    pad(paint("bold", title), width - clock.length) + paint("dim", clock),
    groundLine,
    counts + paint("cyan", spark),
    tabs(state, paint),
  ];
}

const titles = { leases: "leases", holders: "holders", ground: "ground", events: "events" } as const;

function tabs({ view, filter, isTyping }: TopState, paint: Paint): string {
  const named = views.map((each, at) => {
    const text = ` ${at + 1} ${titles[each]} `;
    return each === view ? paint("inverse", text) : paint("dim", text);
  });
  const typed = `${printable(filter)}${isTyping ? "▏" : ""}`;
  const filtered = filter === "" && !isTyping ? "" : `  filter: ${paint("yellow", typed)}`;
  return named.join("") + filtered;
}

const levels = [..."▁▂▃▄▅▆▇█"];

/** One character for each figure, its height in proportion to the greatest figure. */
export function sparkline(figures: readonly number[]): string {
  const most = figures.reduce((one, other) => Math.max(one, other), 0);
  return figures
    .map((figure) => (figure === 0 ? " " : levels[Math.ceil((figure / most) * levels.length) - 1]))
    .join("");
}

interface Body {
  readonly size: Size;
  readonly width: number;
  readonly room: number;
  readonly paint: Paint;
}

function bodyLines(scene: TopScene, state: TopState, body: Body): string[] {
  const { size, width, room, paint } = body;
  const news = newsRows(size, state);
  const detail = () => detailLines(scene.detail, state.chosen, scene.nowMs, paint);
  if (state.view === "leases" && state.isOpen) return wrapAll(detail(), width);
  if (state.view === "events") return eventLines(scene.events, room, width, paint);
  const isWide = showsDetail(size, state);
  const listWidth = isWide ? width - detailColumns - 3 : width;
  const list = listLines(scene, state, { ...body, width: listWidth, room: room - news });
  const left = isWide ? beside(list, wrapAll(detail(), detailColumns), listWidth, room - news, paint) : list;
  const filled = Array.from({ length: room - news }, (_, at) => left[at] ?? "");
  if (news === 0) return filled;
  const title = paint("dim", `─ events ${"─".repeat(Math.max(0, width - 9))}`);
  return [...filled, title, ...eventLines(scene.events, news - 1, width, paint)];
}

function beside(
  left: readonly string[],
  right: readonly string[],
  leftWidth: number,
  rows: number,
  paint: Paint,
): string[] {
  return Array.from({ length: rows }, (_, at) => {
    const line = fit(left[at] ?? "", leftWidth);
    return `${pad(line, leftWidth)} ${paint("dim", "│")} ${right[at] ?? ""}`;
  });
}

function listLines(scene: TopScene, state: TopState, body: Body): string[] {
  switch (state.view) {
    case "ground":
      return groundLines(scene.ground, body);
    case "holders":
      return rowsOf(
        scene.holders,
        ({ holder }) => holder,
        holderColumns,
        (row) => holderCells(row, scene.nowMs),
        state,
        body,
        "nobody holds a lease",
      );
    default:
      return rowsOf(
        scene.leases,
        ({ name }) => name,
        leaseColumns(state, body.width),
        (row) => leaseCells(scene.latest(row.name) ?? row, scene.nowMs, body.width),
        state,
        body,
        state.filter === "" ? "nobody holds a lease" : "no lease matches the filter; Esc clears it",
      );
  }
}

/** The part of a list around the cursor. The cursor's row is in inverse. */
function rowsOf<Row>(
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  columns: readonly Column[],
  cellsFor: (row: Row) => readonly Cell[],
  { chosen }: TopState,
  { width, room, paint }: Body,
  empty: string,
): string[] {
  if (rows.length === 0) return ["", paint("dim", ` ${empty}`)];
  const page = Math.max(1, room - 1);
  // A chosen lease that is no longer held has no row, but keeps its details.
  const at = chosen === undefined ? 0 : rows.findIndex((row) => keyOf(row) === chosen);
  const from = Math.max(0, Math.min(rows.length - page, at - Math.floor(page / 2)));
  const shown = rows.slice(from, from + page);
  const [head = "", ...lines] = tableLines(columns, shown.map(cellsFor), paint, width - 1);
  const place =
    rows.length > page ? paint("dim", `  ${from + 1} to ${from + shown.length} of ${rows.length}`) : "";
  const title = cellsOf(head) + cellsOf(place) < width ? head + place : head;
  return [
    ` ${title}`,
    ...lines.map((line, index) =>
      from + index === at ? paint("inverse", pad(` ${unpainted(line)}`, width)) : ` ${line}`,
    ),
  ];
}

/** On narrower screens the bars are shorter, and only the details show labels. */
const labelledColumns = 110;

const leaseColumns = ({ order, isReversed }: TopState, width: number): readonly Column[] => {
  const arrow = isReversed ? "▲" : "▼";
  const marked = (title: string, sorts: string) => (order === sorts ? `${title} ${arrow}` : title);
  return [
    { title: marked("LEASE", "name"), shrinks: true },
    { title: marked("HOLDER", "holder"), shrinks: true },
    { title: "TOKEN", align: "right" },
    { title: marked("TIME LEFT", "time left") },
    { title: marked("HELD FOR", "held for"), align: "right" },
    ...(width < labelledColumns ? [] : [{ title: "IT SAYS IT IS", shrinks: true }]),
  ];
};

function leaseCells(lease: LeaseView, nowMs: number, width: number): readonly Cell[] {
  const { name, holder, token, endsMs, spanMs, sinceMs, isOlder, label = "" } = lease;
  const leftMs = Math.max(0, endsMs - nowMs);
  const share = spanMs === 0 ? 0 : leftMs / spanMs;
  const bar = drainingBar(share, width < labelledColumns ? 6 : 12);
  const style = share < 1 / 3 ? ("yellow" as const) : ("green" as const);
  return [
    { text: name, style: "bold" },
    { text: shortHolder(holder) },
    { text: token, style: "cyan" },
    { text: `${bar} ${pad(tenths(leftMs), 8, "right")}`, style },
    { text: `${isOlder === true ? "> " : ""}${tenths(nowMs - sinceMs)}`, style: "dim" },
    ...(width < labelledColumns ? [] : [{ text: label, style: "dim" as const }]),
  ];
}

const holderColumns: readonly Column[] = [
  { title: "HOLDER", shrinks: true },
  { title: "LEASES", align: "right" },
  { title: "FIRST END IN", align: "right" },
  { title: "HOLDS FOR", align: "right" },
  { title: "IT SAYS IT IS", shrinks: true },
];

function holderCells(
  { holder, leases, endsMs, sinceMs, label = "" }: HolderRow,
  nowMs: number,
): readonly Cell[] {
  return [
    { text: shortHolder(holder), style: "bold" },
    { text: String(leases), style: "cyan" },
    { text: tenths(Math.max(0, endsMs - nowMs)) },
    { text: tenths(nowMs - sinceMs), style: "dim" },
    { text: label, style: "dim" },
  ];
}

const stateStyles = { ready: "green", waiting: "yellow", bad: "red", silent: "red" } as const;

function groundLines(ground: GroundView | undefined, { width, paint }: Body): string[] {
  if (ground === undefined) return ["", paint("dim", " asking …")];
  if (ground.parts.length === 0) return ["", ` ${ground.summary}`];
  return ground.parts.flatMap((part) => partLines(part, ground, width, paint));
}

function partLines(part: PartView, { maxClockSkewMs }: GroundView, width: number, paint: Paint): string[] {
  const { id, address, state, text, facts, peers = [] } = part;
  const sign = paint(stateStyles[state], state === "ready" ? "●" : "○");
  const where = address === id ? "" : `  ${paint("dim", printable(address))}`;
  const named = `${sign} ${paint("bold", printable(id))}${where}  ${paint(stateStyles[state], printable(text))}`;
  const told = facts.map(([name, value]) => `${name} ${value}`).join(" · ");
  const others = peers.map((peer) => {
    if (!peer.isConnected) return paint("red", `${peer.id} is cut off`);
    const { skewMs, skewErrorMs = 0, roundTripMs } = peer;
    const clock = skewMs === undefined ? "?" : `${skewMs >= 0 ? "+" : "-"}${Math.abs(skewMs).toFixed(1)} ms`;
    const isFar =
      maxClockSkewMs !== undefined && skewMs !== undefined && Math.abs(skewMs) - skewErrorMs > maxClockSkewMs;
    const trip = roundTripMs === undefined ? "" : `, round trip ${roundTripMs.toFixed(1)} ms`;
    return paint(isFar ? "red" : "dim", `${peer.id}: clock ${clock}${trip}`);
  });
  return [
    named,
    ...[told, ...others].filter((line) => line !== "").flatMap((line) => wrap(`    ${line}`, width)),
    "",
  ];
}

const eventStyles = {
  acquired: "green",
  released: "dim",
  "ran-out": "yellow",
  "passed-on": "yellow",
  ended: "dim",
  ground: "blue",
  trouble: "red",
  action: "cyan",
} as const;

/** Newest first. */
function eventLines(events: readonly EventView[], room: number, width: number, paint: Paint): string[] {
  if (events.length === 0 && room > 0) return [paint("dim", " nothing has changed yet")];
  return events
    .slice(Math.max(0, events.length - room))
    .toReversed()
    .map(({ atMs, kind, name, text }) => {
      const about = name === undefined ? "" : `${printable(name)}: `;
      const line = cut(about + printable(text), Math.max(0, width - 11));
      return ` ${paint("dim", clockTime(atMs))}  ${paint(eventStyles[kind], line)}`;
    });
}

function wrapAll(lines: readonly string[], width: number): string[] {
  return lines.flatMap((line) => wrap(line, width));
}

/**
 * Breaks a line that is too wide between words, and indents the rest like its beginning. Such a line loses
 * its colours.
 */
export function wrap(line: string, width: number): string[] {
  if (cellsOf(line) <= width) return [line];
  const [indent = ""] = /^ */.exec(line) ?? [];
  const lines: string[] = [];
  let now = indent;
  for (const word of unpainted(line).trim().split(" ")) {
    const longer = now.trim() === "" ? indent + word : `${now} ${word}`;
    if (cellsOf(longer) > width && now.trim() !== "") {
      lines.push(now);
      now = cut(indent + word, width);
    } else now = cut(longer, width);
  }
  return [...lines, now];
}

/** The keys that matter now, as many as fit. The last ones have priority. */
function footLine({ isTyping, view, isOpen, order, isHelp }: TopState, width: number, paint: Paint): string {
  const keys: readonly (readonly [string, string])[] = isHelp
    ? [["any key", "back"]]
    : isTyping
      ? [
          ["letters", "of a name, holder or label"],
          ["⏎", "keep it"],
          ["Esc", "clear it"],
        ]
      : [
          ["↑↓", "choose"],
          ...(view === "leases" ? ([["⏎", isOpen ? "list" : "details"]] as const) : []),
          ...(view === "holders" ? ([["⏎", "its leases"]] as const) : []),
          ["/", "filter"],
          ...(view === "leases" ? ([["s", `sort: ${order}`]] as const) : []),
          ["r", "reverse"],
          ["1-4", "views"],
          ["?", "help"],
          ["q", "quit"],
        ];
  const words = keys.map(([key, what]) => `${paint("bold", key)} ${paint("dim", what)}`);
  while (words.length > 2 && cellsOf(words.join("  ")) > width) words.splice(-3, 1);
  return words.join("  ");
}

function helpLines(paint: Paint): string[] {
  const keys: readonly (readonly [string, string])[] = [
    ["1 2 3 4, Tab, ← →", "leases, holders, the ground they rest on, events"],
    ["↑ ↓ PgUp PgDn Home End", "move; k, j, g and G too"],
    ["Enter", "of a lease its details, of a holder its leases"],
    ["/", "filter by a part of a lease's name, holder or label"],
    ["Esc", "close the details, or clear the filter"],
    ["s, r", "sort by the next column; reverse"],
    ["q, Ctrl-C", "quit"],
  ];
  return [
    "",
    ...keys.map(([key, what]) => `  ${paint("bold", pad(key, 24))}${what}`),
    "",
    "  Times and holders are hints, as every answer about the leases of others.",
  ];
}
