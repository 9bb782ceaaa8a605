import { majorityOf } from "../../common/majority.js";
import { coreReport } from "../../etcd/open.js";
import type { CoreReport, ServerReport } from "../../etcd/core-report.js";
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
  { title: "LOG", align: "right" },
  { title: "DATA", align: "right" },
  { title: "ROUND TRIP", align: "right" },
];

/** A server that does not answer for so long is away, ms; it shall not keep the others' answers back. */
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

/** Whether a majority of the servers follows one of them, in one term. */
export function hasLeader({ servers, size }: CoreReport): boolean {
  const answers = servers.filter((report) => report.reachable);
  const followersOf = (id: string, term: bigint) =>
    answers.filter((each) => each.leader === id && each.term === term).length;
  return answers.some(({ isLeader, id, term }) => isLeader && followersOf(id, term) >= majorityOf(size));
}

export function presentServers(report: CoreReport): Presentation {
  return {
    document: report.servers,
    table: (paint, widthMax) => {
      const lines = tableLines(COLUMNS, report.servers.map(rowOf), paint, widthMax);
      if (hasLeader(report)) return lines;
      return [
        ...lines,
        paint("red", "no majority of the servers follows one leader: no lease can be had now"),
      ];
    },
  };
}

function rowOf(report: ServerReport): Cell[] {
  const address = { text: report.address };
  if (!report.reachable)
    return [{ text: "-" }, address, { text: `unreachable: ${report.reason}`, style: "red" }];
  const { name, id, version, term, logIndex, dataBytes, roundTripMs } = report;
  return [
    { text: name === "" ? id : name, style: "bold" },
    address,
    stateOf(report),
    { text: version },
    { text: String(term) },
    { text: String(logIndex) },
    { text: `${(Number(dataBytes) / megabyte).toFixed(1)} MB` },
    { text: `${roundTripMs.toFixed(2)} ms` },
  ];
}

function stateOf(report: ServerReport & { readonly reachable: true }): Cell {
  if (report.isLeader) return { text: "leads", style: "green" };
  if (report.leader === "") return { text: "knows no leader", style: "red" };
  return { text: "follows", style: "green" };
}
