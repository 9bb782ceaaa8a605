import { majorityOf } from "../../common/majority.js";
import type { MemberReport, PeerStatus } from "../../flease/tcp/types.js";
import { isCoreUrl } from "../../etcd/address.js";
import { clusterStatus } from "../../index.js";
import { isFarmUrl } from "../../stores/farm-address.js";
import { exitCode } from "../common/exit-codes.js";
import type { Paint, Style } from "../output/ansi.js";
import { type Presentation, present, shortTime } from "../output/present.js";
import { type Cell, type Column, tableLines } from "../output/table.js";
import { coreStatus } from "./core-status.js";
import { storeStatus } from "./store-status.js";
import { type SharedOptions, openOptions, refuseMemory, settingsOf } from "../common/settings.js";
import { few } from "../../common/lists.js";

const COLUMNS: readonly Column[] = [
  { title: "MEMBER" },
  { title: "ADDRESS", shrinks: true },
  { title: "STATE", shrinks: true },
  { title: "RESOURCES", align: "right" },
  { title: "CLIENTS", align: "right" },
  { title: "PEERS: ROUND TRIP, SKEW", shrinks: true },
];

/** `leasehold status`: exit code 69 if fewer than a majority of the members or stores are ready. */
export async function status(options: SharedOptions): Promise<number> {
  const settings = settingsOf(options);
  refuseMemory("status", settings);
  if (settings.endpoints.some(isFarmUrl)) return storeStatus(settings);
  if (settings.endpoints.some(isCoreUrl)) return coreStatus(settings);
  const reports = await clusterStatus(...few(settings.endpoints), openOptions(settings));
  present(settings.output, presentStatus(reports));
  return hasQuorum(reports) ? exitCode("ok") : exitCode("unavailable");
}

function hasQuorum(reports: readonly MemberReport[]): boolean {
  const ready = reports.filter((report) => report.reachable && report.status.state === "ready");
  return ready.length >= majorityOf(reports.length);
}

export function presentStatus(reports: readonly MemberReport[]): Presentation {
  const sorted = [...reports].sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    document: sorted,
    table: (paint: Paint, widthMax: number) => {
      const lines = tableLines(COLUMNS, sorted.map(rowOf), paint, widthMax);
      if (hasQuorum(sorted)) return lines;
      return [
        ...lines,
        paint("red", "fewer than a majority of the members are ready: no lease can be had now"),
      ];
    },
  };
}

function rowOf(report: MemberReport): Cell[] {
  const first: Cell[] = [{ text: report.id, style: "bold" }, { text: report.address }, stateOf(report)];
  if (!report.reachable) return [...first, ...COLUMNS.slice(first.length).map(() => ({ text: "-" }))];
  const { resources, clients, peers } = report.status;
  return [
    ...first,
    { text: String(resources) },
    { text: String(clients) },
    { text: peers.map(peerText).join("  ") },
  ];
}

/** A member's state in words, as on the screen of `up`. */
export function stateOf(report: MemberReport): { text: string; style: Style } {
  if (!report.reachable) return { text: `unreachable: ${report.reason}`, style: "red" };
  const { state, readyInMs } = report.status;
  if (state === "ready") return { text: "ready", style: "green" };
  if (state === "recovering")
    return { text: `recovering, ready in ${shortTime(readyInMs)}`, style: "yellow" };
  if (state === "learner") return { text: "no vote: it learns", style: "yellow" };
  if (state === "twin") return { text: "another process is this member", style: "red" };
  return { text: "clock fault", style: "red" };
}

function peerText(peer: PeerStatus): string {
  if (!peer.connected) return `${peer.id}: not connected`;
  const trip = peer.roundTripMs === undefined ? "?" : `${peer.roundTripMs.toFixed(2)} ms`;
  return `${peer.id}: ${trip}, ${skewText(peer)}`;
}

function skewText({ skewMs, skewErrorMs = 0 }: PeerStatus): string {
  if (skewMs === undefined) return "?";
  return `${skewMs < 0 ? "" : "+"}${skewMs.toFixed(1)}±${skewErrorMs.toFixed(1)} ms`;
}
