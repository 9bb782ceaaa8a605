import { majorityOf } from "../../common/majority.js";
import { coreReport } from "../../etcd/open.js";
import type { AnsweringServer, CoreReport, ServerReport, SyncTimes } from "../../etcd/core-report.js";
import { realWorld } from "../../runtime/world.js";
import { openOptions, type Settings } from "../common/settings.js";
import { exitCode } from "../common/exit-codes.js";
import { type Presentation, present } from "../output/present.js";
import { type Cell, type Column, tableLines } from "../output/table.js";

const COLUMNS: readonly Column[] = [
  { title: "SERVER", shrinks: true },
  { title: "ADDRESS", shrinks: true },
  { title: "STATE", shrinks: true },
  { title: "VERSION" },
  { title: "TERM", align: "right" },
  { title: "APPLIED", align: "right" },
  { title: "LAG", align: "right" },
  { title: "DATA", align: "right" },
  { title: "SYNC p50", align: "right" },
  { title: "p99", align: "right" },
  { title: "ROUND TRIP", align: "right" },
];

/** Columns that are omitted on narrow terminals; `-o json` has everything. */
const spared: ReadonlySet<string> = new Set(["VERSION", "DATA", "SYNC p50", "p99"]);
const widthOfAll = 110;

/** Timeout for each server, ms: a slow one must not delay the answers of the others. */
const askMsMax = 2_000;

const megabyte = 1_000_000;

/** `leasehold status` of a core: exit code 69 unless a majority follows one leader. */
export async function coreStatus(settings: Settings): Promise<number> {
  const report = await askServers(settings);
  present(settings.output, presentServers(report));
  return hasLeader(report) ? exitCode("ok") : exitCode("unavailable");
}

export function askServers(settings: Settings): Promise<CoreReport> {
  const options = { ...openOptions(settings), timeout: Math.min(settings.timeoutMs, askMsMax) };
  return coreReport(settings.endpoints, options, realWorld());
}

/** Whether a majority of the voting servers follows one leader in the same term. */
export function hasLeader({ servers, size }: CoreReport): boolean {
  const answers = voters(servers);
  const followersOf = (id: string, term: bigint) =>
    answers.filter((each) => each.leader === id && each.term === term).length;
  return answers.some(({ isLeader, id, term }) => isLeader && followersOf(id, term) >= majorityOf(size));
}

export function answering(servers: readonly ServerReport[]): AnsweringServer[] {
  return servers.filter((report) => report.reachable);
}

export function voters(servers: readonly ServerReport[]): AnsweringServer[] {
  return answering(servers).filter(({ isLearner }) => !isLearner);
}

export function nameOf({ address, id, name }: Pick<ServerReport, "address" | "id" | "name">): string {
  return [name, id, address].find((each) => each !== undefined && each !== "")!;
}

export function presentServers(report: CoreReport): Presentation {
  return {
    document: report.servers,
    table: (paint, widthMax) => {
      const shown = COLUMNS.map(({ title }) => widthMax >= widthOfAll || !spared.has(title));
      const kept = <T>(all: readonly T[]) => all.filter((_, index) => shown[index]);
      const rows = report.servers.map((server) => kept(rowOf(server)));
      const lines = tableLines(kept(COLUMNS), rows, paint, widthMax);
      const alarms = alarmsOf(report).map((text) => paint("red", text));
      if (hasLeader(report)) return [...lines, ...alarms];
      const text = "no majority of the servers follows one leader: no lease can be had now";
      return [...lines, ...alarms, paint("red", text)];
    },
  };
}

/** Each alarm once, however many servers report it. */
export function alarmsOf({ servers }: CoreReport): string[] {
  const raised = new Set(answering(servers).flatMap(({ alarms }) => alarms));
  return [...raised].map((alarm) => {
    const [, member = "", kind = alarm] = /(?:memberID:(\d+) )?alarm:(\w+)/.exec(alarm) ?? [];
    const id = member === "" ? "" : BigInt(member).toString(16);
    const of = servers.find((each) => each.id === id);
    if (kind === "CORRUPT")
      return of === undefined && id === ""
        ? "the servers have different keys, and no majority says which are right: the alarm CORRUPT is raised"
        : `the keys of ${of === undefined ? id : nameOf(of)} are not those of the other servers: the alarm CORRUPT is raised`;
    return `${of === undefined ? id || "a server" : nameOf(of)} has raised the alarm ${kind}`;
  });
}

function rowOf(report: ServerReport): Cell[] {
  const first: Cell[] = [{ text: nameOf(report), style: "bold" }, { text: report.address }];
  if (!report.reachable) return [...first, { text: `unreachable: ${report.reason}`, style: "red" }];
  const { appliedIndex, lag, own, roundTripMs, term, version } = report;
  return [
    ...first,
    stateOf(report),
    { text: own?.leaseholdVersion ?? version },
    { text: String(term) },
    { text: String(appliedIndex) },
    { text: String(lag) },
    { text: dataOf(report) },
    ...syncCells(own?.syncs),
    { text: `${roundTripMs.toFixed(2)} ms` },
  ];
}

function syncCells(syncs: SyncTimes | undefined): Cell[] {
  if (syncs === undefined || syncs.samples === 0) return [{ text: "-" }, { text: "-" }];
  return [{ text: `${syncs.p50Ms.toFixed(1)} ms` }, { text: `${syncs.p99Ms.toFixed(1)} ms` }];
}

/** For Leasehold's core, the size that counts towards the quota; for etcd, the size on disk. */
function dataOf({ dataBytes, own }: AnsweringServer): string {
  if (own === undefined) return `${(Number(dataBytes) / megabyte).toFixed(1)} MB`;
  return `${(Number(own.stateBytes) / megabyte).toFixed(1)} of ${Math.round(Number(own.quotaBytes) / megabyte)} MB`;
}

function stateOf({ isLeader, isLearner, leader }: AnsweringServer): Cell {
  if (isLeader) return { text: "leads", style: "green" };
  if (leader === "") return { text: "knows no leader", style: "red" };
  return isLearner ? { text: "learns", style: "yellow" } : { text: "follows", style: "green" };
}
