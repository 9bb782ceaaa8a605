import { slotMark, slotName, slotNumber } from "../../lease/slots.js";
import type { Explanation, HolderHint, Leases, MemberView, ResourceHint } from "../../lease/types.js";
import { withLeases } from "../common/connection.js";
import { exitCode } from "../common/exit-codes.js";
import type { Paint, Style } from "../output/ansi.js";
import { cut, pad, printable } from "../output/cells.js";
import { toJson } from "../output/json.js";
import { type Presentation, present, shortTime } from "../output/present.js";
import { type Cell, type Column, tableLines } from "../output/table.js";
import { type SharedOptions, settingsOf } from "../common/settings.js";
import { confirmedText, leaseView, stateCell } from "./lease-view.js";

const LABEL_CELLS = 11;
const stateStyle: Record<HolderHint["state"], Style> = { held: "green", free: "cyan", unknown: "yellow" };
const COLUMNS: readonly Column[] = [
  { title: "MEMBER" },
  { title: "ADDRESS", shrinks: true },
  { title: "STATE", shrinks: true },
  { title: "LEASE THAT IT KNOWS", shrinks: true },
  { title: "WAITING", align: "right" },
];
/** Waiters leave no trace in a store, and a store's name is its address. */
const STORE_COLUMNS: readonly Column[] = [{ title: "STORE" }, ...COLUMNS.slice(2, 4)];

/** `leasehold get NAME`. The exit code says that the cluster answered, not what. */
export async function get(resource: string, options: SharedOptions): Promise<number> {
  const settings = settingsOf(options);
  const [explanation, slots] = await withLeases(settings, async (leases) =>
    Promise.all([
      leases.explain(resource, { timeout: settings.timeoutMs }),
      slotsOf(leases, resource, settings.timeoutMs),
    ]),
  );
  present(settings.output, presentExplanation(explanation, slots));
  return exitCode("ok");
}

/** The other slots of a counted lease, and readers; empty if they cannot be listed. */
async function slotsOf(leases: Leases, resource: string, timeout: number): Promise<ResourceHint[]> {
  const listed = await leases
    .list(`${resource}${slotMark}`, { timeout, onIncomplete: () => undefined })
    .catch(() => []);
  return listed
    .filter((hint) => hint.resource === slotName(resource, slotNumber(hint.resource)))
    .sort((one, other) => slotNumber(one.resource) - slotNumber(other.resource));
}

export function presentExplanation(
  explanation: Explanation,
  slots: readonly ResourceHint[] = [],
): Presentation {
  const { quorum, broken, waiting, reasons, members } = explanation;
  const ofSlots = slots.length === 0 ? {} : { slots: slots.map(leaseView) };
  const view = { ...leaseView(explanation), ...ofSlots, quorum, broken, waiting, reasons, members };
  return {
    document: view,
    table: (paint: Paint, widthMax: number) => [
      ...factLines(explanation, paint, widthMax),
      ...slots.map((slot) => slotLine(slot, paint, widthMax)),
      "",
      ...reasons.map((reason) => cut(printable(reason), widthMax)),
      ...(members.length === 0 ? [] : ["", ...memberLines(members, paint, widthMax)]),
    ],
  };
}

function factLines(explanation: Explanation, paint: Paint, widthMax: number): string[] {
  const { resource, state, holder, label, data, token, remainingMs, broken } = explanation;
  const line = (name: string, text: string, style?: Style): string => {
    const shown = cut(printable(text), widthMax - LABEL_CELLS);
    return paint("dim", pad(name, LABEL_CELLS)) + (style === undefined ? shown : paint(style, shown));
  };
  const lines = [
    line("resource", resource, "bold"),
    line("state", stateText(explanation), stateStyle[state]),
  ];
  if (holder !== undefined) lines.push(line("holder", holder));
  if (label !== undefined) lines.push(line("label", label));
  if (data !== undefined) lines.push(line("data", toJson(data)));
  if (token !== undefined) lines.push(line("token", String(token), "cyan"));
  if (remainingMs !== undefined) {
    const unless = broken ? "and it is not renewed any more" : "unless it is renewed";
    lines.push(line("time left", `at most ${shortTime(remainingMs)} ${unless}`));
  }
  return lines;
}

/** A line for one more holder. */
function slotLine(
  { resource, holder = "-", token, remainingMs }: ResourceHint,
  paint: Paint,
  widthMax: number,
) {
  const left = remainingMs === undefined ? "" : `, ${shortTime(remainingMs)} left unless renewed`;
  const text = `${holder}${token === undefined ? "" : `, token ${token}`}${left}`;
  const name = pad(`slot ${slotNumber(resource)}`, LABEL_CELLS);
  return paint("dim", name) + cut(printable(text), widthMax - LABEL_CELLS);
}

function memberLines(members: readonly MemberView[], paint: Paint, widthMax: number): string[] {
  const rows = members.map(rowOf);
  if (members.some(({ id, address }) => id !== address)) return tableLines(COLUMNS, rows, paint, widthMax);
  return tableLines(
    STORE_COLUMNS,
    rows.map(([id, , state, known]) => [id!, state!, known!]),
    paint,
    widthMax,
  );
}

function rowOf(member: MemberView): Cell[] {
  const { id, address, state, lease, barred, waiting } = member;
  const left = lease?.state === "live" ? `${shortTime(lease.remainingMs)} left` : lease?.state;
  const known = lease === undefined ? "none" : `${lease.holder}, ${left}`;
  return [
    { text: id, style: "bold" },
    { text: address },
    stateCell(member),
    { text: state !== "ready" ? "-" : barred === undefined ? known : `${known}; ${barred} is barred` },
    { text: waiting === undefined ? "-" : String(waiting) },
  ];
}

function stateText({ state, confirmed }: HolderHint): string {
  if (state === "unknown") return "unknown (too few members answered)";
  return `${state}, ${confirmedText(confirmed)}`;
}
