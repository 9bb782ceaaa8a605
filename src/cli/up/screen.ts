import { type Paint, type Style } from "../output/ansi.js";
import { cellsOf, cut, pad, printable } from "../output/cells.js";
import { shortTime } from "../output/present.js";
import type { Change, LeaseRow, MemberRow } from "./board.js";

/** Everything that the screen shows. */
export interface ScreenState {
  readonly nowMs: number;
  readonly startedAtMs: number;
  readonly members: readonly MemberRow[];
  /** The resources that the workers contend for: they have a line also when nobody holds them. */
  readonly resources: readonly string[];
  readonly leases: readonly LeaseRow[];
  readonly log: readonly Change[];
  readonly ttlMs: number;
  readonly workers: number;
  readonly kills: boolean;
  /** What to type into a second terminal. */
  readonly tryCommand: string;
  /** Set while everything is being stopped, or when the cluster does not answer. */
  readonly notice?: string;
}

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

const MARGIN = " ";
const BAR_CELLS = 12;
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/** The log shows at least this much, also when many resources are held: then the table is cut. */
const LOG_LINES_MIN = 3;

const memberStyle: Record<MemberRow["state"], Style> = {
  starting: "dim",
  recovering: "yellow",
  ready: "green",
  "clock-fault": "red",
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

/** The whole screen as lines: exactly as many as it has rows, none wider than it is. */
export function renderScreen(state: ScreenState, size: ScreenSize, paint: Paint): string[] {
  const width = Math.max(1, size.columns - MARGIN.length);
  const head = [...headLines(state, width, paint), ""];
  const foot = footLines(state, width, paint);
  const table = tableOf(state, width, paint);
  const tableRoom = Math.max(2, size.rows - head.length - foot.length - LOG_LINES_MIN - 1);
  const middle = [...table.slice(0, tableRoom), ""];
  const logRoom = Math.max(0, size.rows - head.length - middle.length - foot.length);
  const log = logLines(state.log, logRoom, width, paint);
  const lines = [...head, ...middle, ...log, ...foot].map((line) => (line === "" ? "" : MARGIN + line));
  // On a very small screen the end matters most: it says how to leave.
  return lines.slice(Math.max(0, lines.length - size.rows));
}

function headLines(state: ScreenState, width: number, paint: Paint): string[] {
  const counts = `${state.members.length} members, ${state.workers} workers, ${shortTime(state.nowMs - state.startedAtMs)}`;
  const title = cut(`Leasehold · ${counts}`, width);
  const members = state.members.map((member) => memberLine(member, state.nowMs, width, paint));
  const ready = state.members.filter((member) => member.state === "ready").length;
  const waiting =
    ready <= state.members.length / 2 ? "no lease can be had until a majority of the members is ready" : "";
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
  // Whole tenths, and never a negative one: the next answer of the member comes a moment late.
  return `recovering, ready in ${(Math.max(0, (member.readyAtMs ?? nowMs) - nowMs) / 1_000).toFixed(1)} s`;
}

function tableOf(state: ScreenState, width: number, paint: Paint): string[] {
  const rows = new Map<string, LeaseRow | undefined>(state.resources.map((name) => [name, undefined]));
  for (const lease of state.leases) rows.set(lease.resource, lease);
  const names = [...rows.keys()].sort();
  const tokenCells = Math.max(5, ...state.leases.map((lease) => lease.token.length));
  const fixed = tokenCells + BAR_CELLS + 1 + 8 + 9 + 4 * 2;
  const free = Math.max(16, width - fixed);
  const nameCells = Math.min(Math.max(8, ...names.map((name) => cellsOf(name))), Math.floor(free * 0.55));
  const holders = state.leases.map((lease) => cellsOf(holderText(lease)));
  const holderCells = Math.min(Math.max(16, ...holders), free - nameCells);
  const titles = [
    pad("RESOURCE", nameCells),
    pad("HOLDER", holderCells),
    pad("TOKEN", tokenCells, "right"),
    pad("TIME LEFT", BAR_CELLS + 9),
    "HELD FOR",
  ];
  const cells = { nameCells, holderCells, tokenCells };
  const lines = names.map((name) => leaseLine(name, rows.get(name), state, cells, paint));
  return [paint("dim", cut(titles.join("  "), width)), ...lines.map((line) => fit(line, width))];
}

interface TableCells {
  readonly nameCells: number;
  readonly holderCells: number;
  readonly tokenCells: number;
}

function leaseLine(
  name: string,
  lease: LeaseRow | undefined,
  state: ScreenState,
  cells: TableCells,
  paint: Paint,
): string {
  const resource = paint("bold", pad(cut(printable(name), cells.nameCells), cells.nameCells));
  if (lease === undefined) return `${resource}  ${paint("dim", "free")}`;
  const leftMs = Math.max(0, lease.endsAtMs - state.nowMs);
  const holder = pad(cut(holderText(lease), cells.holderCells), cells.holderCells);
  const bar = drainingBar(leftMs / state.ttlMs, BAR_CELLS);
  return [
    resource,
    lease.killed ? paint("red", holder) : holder,
    paint("cyan", pad(lease.token, cells.tokenCells, "right")),
    `${paint(barStyle(lease, leftMs / state.ttlMs), bar)} ${pad(shortTime(leftMs), 8, "right")}`,
    paint("dim", shortTime(state.nowMs - lease.sinceMs)),
  ].join("  ");
}

function holderText(lease: LeaseRow): string {
  return printable(lease.holder) + (lease.killed ? " (killed)" : "");
}

function barStyle(lease: LeaseRow, share: number): Style {
  if (lease.killed) return "red";
  return share < 1 / 3 ? "yellow" : "green";
}

/** A bar of so many columns, filled to the nearest eighth of one. */
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
  // The newest line stays where the eye is, just above the footer.
  return [...Array.from({ length: room - lines.length }, () => ""), ...lines];
}

/** Local time of day, to the second. */
export function clockTime(atMs: number): string {
  return new Date(atMs).toTimeString().slice(0, 8);
}

function footLines(state: ScreenState, width: number, paint: Paint): string[] {
  const kills = `kill a holder now and then: ${state.kills ? "on" : "off"}`;
  return [
    "",
    `${paint("dim", "in a second terminal: ")}${paint("bold", cut(state.tryCommand, Math.max(0, width - 22)))}`,
    fit(
      `${paint("bold", "k")} ${paint("dim", kills)}   ${paint("bold", "q")} ${paint("dim", "quit")}`,
      width,
    ),
  ];
}

/** A painted line that is too wide is shown without its colours: it is cut only on very narrow terminals. */
function fit(line: string, width: number): string {
  return cellsOf(line) <= width ? line : cut(line.replaceAll(PAINTED, ""), width);
}

const PAINTED = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");
