import { type Paint, type Style } from "../output/ansi.js";
import { cellsOf, cut, pad, printable, unpainted } from "../output/cells.js";
import { shortTime } from "../output/present.js";
import type { Change, LeaseRow, MemberRow } from "./board.js";
import { greatest } from "../../common/lists.js";
import { majorityOf } from "../../common/majority.js";

/** The content of the screen. */
export interface ScreenState {
  readonly nowMs: number;
  readonly startedAtMs: number;
  readonly members: readonly MemberRow[];
  /** The resources that the workers contend for. They have a line even if nobody holds them. */
  readonly resources: readonly string[];
  readonly leases: readonly LeaseRow[];
  /** For each waiting worker, the resource that it waits for. */
  readonly waiting: readonly string[];
  readonly log: readonly Change[];
  readonly ttlMs: number;
  readonly workers: number;
  readonly kills: boolean;
  /** The address of the console. */
  readonly page?: string;
  /** The command for a second terminal. */
  readonly tryCommand: string;
  /** Set during shutdown, or when the cluster does not answer. */
  readonly notice?: string;
}

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

const MARGIN = " ";
const GAP = "  ";
const BAR_CELLS_MAX = 12;
const BAR_CELLS_MIN = 6;
/** `12.3 s`, `4 min 20 s`. */
const TIME_CELLS = 8;
const HOLDER_CELLS_MIN = 18;
/** Names and holders may be truncated to this total width before the last columns are dropped. */
const NAMES_CELLS_MIN = 32;
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/** The minimum number of log lines. If many resources are held, the table is cut instead. */
const LOG_LINES_MIN = 3;

const memberStyle: Record<MemberRow["state"], Style> = {
  starting: "dim",
  recovering: "yellow",
  ready: "green",
  learner: "yellow",
  "clock-fault": "red",
  twin: "red",
  unreachable: "red",
};

const changeStyle: Record<Change["kind"], Style> = {
  member: "blue",
  worker: "dim",
  acquired: "green",
  "taken-over": "yellow",
  released: "dim",
  killed: "red",
  lost: "red",
  trouble: "red",
};

/** The whole screen as lines: exactly one for each row, none wider than the screen. */
export function renderScreen(state: ScreenState, size: ScreenSize, paint: Paint): string[] {
  const width = Math.max(1, size.columns - MARGIN.length);
  const head = [...headLines(state, width, paint), ""];
  const foot = footLines(state, width, paint);
  const table = tableOf(state, width, paint);
  const tableRoom = Math.max(2, size.rows - head.length - foot.length - LOG_LINES_MIN - 1);
  const middle = [...table.slice(0, tableRoom), ""];
  const logRoom = Math.max(0, size.rows - head.length - middle.length - foot.length);
  const log = logLines(state.log, logRoom, width, paint);
  const lines = [...head, ...middle, ...log, ...foot].map((line) =>
    line === "" ? "" : fit(MARGIN + line, size.columns),
  );
  // On a very small screen the last line matters most, because it shows the key to quit.
  return lines.slice(Math.max(0, lines.length - size.rows));
}

function headLines(state: ScreenState, width: number, paint: Paint): string[] {
  const counts = `${state.members.length} members, ${state.workers} workers, ${seconds(state.nowMs - state.startedAtMs)}`;
  const page = state.page === undefined ? "" : ` · ${state.page}`;
  const title = cut(`Leasehold · ${counts}${page}`, width);
  const members = state.members.map((member) => memberLine(member, state.nowMs, width, paint));
  const ready = state.members.filter((member) => member.state === "ready").length;
  const waiting =
    ready < majorityOf(state.members.length)
      ? "no lease can be had until a majority of the members is ready"
      : "";
  const notice = state.notice ?? waiting;
  return [paint("bold", title), ...members, ...(notice === "" ? [] : [paint("yellow", cut(notice, width))])];
}

function memberLine(member: MemberRow, nowMs: number, width: number, paint: Paint): string {
  const sign = member.state === "ready" ? "●" : "○";
  const state = memberState(member, nowMs);
  const name = cut(`member ${member.id}  ${member.address}  `, Math.max(0, width - cellsOf(state) - 2));
  return `${paint(memberStyle[member.state], sign)} ${name}${paint(memberStyle[member.state], state)}`;
}

function memberState(member: MemberRow, nowMs: number): string {
  if (member.state !== "recovering") return member.state.replace("-", " ");
  return `recovering, ready in ${seconds((member.readyAtMs ?? nowMs) - nowMs)}`;
}

function tableOf(state: ScreenState, width: number, paint: Paint): string[] {
  const rows = new Map<string, LeaseRow | undefined>(state.resources.map((name) => [name, undefined]));
  for (const lease of state.leases) rows.set(lease.resource, lease);
  const names = [...rows.keys()].sort();
  const cells = layout(names, state.leases, width);
  const titles = [
    pad("RESOURCE", cells.name),
    pad("HOLDER", cells.holder),
    pad("TOKEN", cells.token, "right"),
    pad("TIME LEFT", cells.bar + 1 + TIME_CELLS),
    ...(cells.wide ? [pad("HELD FOR", TIME_CELLS, "right"), "WAITING"] : []),
  ];
  const lines = names.map((name) => leaseLine(name, rows.get(name), state, cells, paint));
  return [paint("dim", cut(titles.join(GAP).trimEnd(), width)), ...lines.map((line) => fit(line, width))];
}

interface TableCells {
  readonly name: number;
  readonly holder: number;
  readonly token: number;
  readonly bar: number;
  /** There is room for optional columns. */
  readonly wide: boolean;
}

/**
 * On a narrow terminal the bar is shortened first, then the last columns are dropped, then names are
 * truncated.
 */
function layout(names: readonly string[], leases: readonly LeaseRow[], width: number): TableCells {
  const name = greatest(names.map(cellsOf), "RESOURCE".length);
  const holder = greatest(
    leases.map((lease) => cellsOf(holderText(lease))),
    HOLDER_CELLS_MIN,
  );
  const token = greatest(
    leases.map((lease) => lease.token.length),
    "TOKEN".length,
  );
  const fixed = token + 1 + TIME_CELLS + 3 * GAP.length;
  const more = TIME_CELLS + "WAITING".length + 2 * GAP.length;
  const wide = width >= fixed + more + BAR_CELLS_MIN + Math.min(name + holder, NAMES_CELLS_MIN);
  const free = width - fixed - (wide ? more : 0);
  const bar = Math.min(BAR_CELLS_MAX, Math.max(BAR_CELLS_MIN, free - name - holder));
  const named = Math.max(HOLDER_CELLS_MIN, free - bar);
  const nameCells = Math.min(name, Math.max(Math.floor(named / 2), named - holder));
  return { name: nameCells, holder: Math.min(holder, Math.max(0, named - nameCells)), token, bar, wide };
}

function leaseLine(
  name: string,
  lease: LeaseRow | undefined,
  state: ScreenState,
  cells: TableCells,
  paint: Paint,
): string {
  const resource = paint("bold", pad(cut(printable(name), cells.name), cells.name));
  if (lease === undefined) return `${resource}${GAP}${paint("dim", "free")}`;
  const leftMs = Math.max(0, lease.endsAtMs - state.nowMs);
  const share = leftMs / state.ttlMs;
  const holder = pad(cut(holderText(lease), cells.holder), cells.holder);
  const bar = paint(barStyle(lease, share), drainingBar(share, cells.bar));
  const waiting = state.waiting.filter((awaited) => awaited === name).length;
  return [
    resource,
    lease.killed ? paint("red", holder) : holder,
    paint("cyan", pad(lease.token, cells.token, "right")),
    `${bar} ${pad(seconds(leftMs), TIME_CELLS, "right")}`,
    ...(cells.wide ? [paint("dim", pad(seconds(state.nowMs - lease.sinceMs), TIME_CELLS, "right"))] : []),
    ...(cells.wide && waiting > 0 ? [String(waiting)] : []),
  ].join(GAP);
}

/** Tenths of a second below a minute, even below a second: a changing figure should keep its format. */
function seconds(ms: number): string {
  return ms < 1_000 ? `${(Math.max(0, ms) / 1_000).toFixed(1)} s` : shortTime(ms);
}

function holderText(lease: LeaseRow): string {
  return printable(lease.holder) + (lease.killed ? " (killed)" : "");
}

function barStyle(lease: LeaseRow, share: number): Style {
  if (lease.killed) return "red";
  return share < 1 / 3 ? "yellow" : "green";
}

/** A bar of `cells` columns, filled to the nearest eighth of one. */
export function drainingBar(share: number, cells: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * cells * 8);
  const filled = "█".repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? "");
  return pad(filled, cells);
}

function logLines(log: readonly Change[], room: number, width: number, paint: Paint): string[] {
  const shown = room === 0 ? [] : log.slice(-room);
  const lines = shown.map((change) => {
    const text = cut(printable(change.text), Math.max(0, width - 10));
    return `${paint("dim", clockTime(change.atMs))}  ${paint(changeStyle[change.kind], text)}`;
  });
  return [...lines, ...Array.from({ length: room - lines.length }, () => "")];
}

/** Local time of day, to the second. */
export function clockTime(atMs: number): string {
  return new Date(atMs).toTimeString().slice(0, 8);
}

function footLines(state: ScreenState, width: number, paint: Paint): string[] {
  const kills = `kill a holder now and then: ${state.kills ? "on" : "off"}`;
  const keys = `${paint("bold", "k")} ${paint("dim", kills)}   ${paint("bold", "q")} ${paint("dim", "quit")}`;
  const label = "in a second terminal:";
  const command = paint("bold", cut(state.tryCommand, width));
  const oneLine = label.length + 1 + state.tryCommand.length <= width;
  return [
    "",
    ...(oneLine ? [`${paint("dim", label)} ${command}`] : [paint("dim", label), command]),
    fit(keys, width),
  ];
}

/** A line that is too wide is truncated and loses its colours; this happens only on very narrow terminals. */
function fit(line: string, width: number): string {
  return cellsOf(line) <= width ? line : cut(unpainted(line), width);
}
