import { formatDuration } from "../../lease/duration.js";
import { majorityOf } from "../../common/majority.js";
import type { FarmAddress } from "../../stores/farm-address.js";
import type { FarmReport, StoreReport } from "../../stores/examine.js";
import type { Latencies } from "../../stores/measure.js";
import type { Proposal } from "../../stores/proposal.js";
import type { Paint } from "../output/ansi.js";
import { cut, printable } from "../output/cells.js";
import { type Presentation, shortTime } from "../output/present.js";
import { type Cell, type Column, tableLines } from "../output/table.js";

const COLUMNS: readonly Column[] = [
  { title: "STORE", shrinks: true },
  { title: "KIND" },
  { title: "AFTER A CRASH" },
  { title: "READ p50", align: "right" },
  { title: "p99", align: "right" },
  { title: "p99.9", align: "right" },
  { title: "WRITE p50", align: "right" },
  { title: "p99", align: "right" },
  { title: "p99.9", align: "right" },
  { title: "SAMPLES", align: "right" },
];

/** Observations about this machine. */
export interface Surroundings {
  /** The reason to distrust the machine's clocks. */
  readonly tooFast?: string | undefined;
  /** Directories on one disk, which fail together. */
  readonly oneDisk?: readonly (readonly string[])[];
}

/** The findings of `leasehold doctor` about stores. */
export function presentFarm(
  report: FarmReport,
  address: FarmAddress,
  endpoints: readonly string[],
  { tooFast, oneDisk }: Surroundings = {},
): Presentation {
  const { stores, plan, error, loopMs, proposal } = report;
  const document = {
    stores: stores.map((store) => ({ ...store, ...(store.error && { error: errorView(store.error) }) })),
    farm: error === undefined ? plan : { error: errorView(error) },
    eventLoopDelayMs: loopMs,
    ...(tooFast !== undefined && { clocks: tooFast }),
    ...(oneDisk !== undefined && oneDisk.length > 0 && { oneDisk }),
    ...(proposal && { proposal: { ...proposal, endpoints: proposedEndpoints(proposal, endpoints) } }),
  };
  return {
    document,
    table: (paint, widthMax) => [
      ...tableLines(COLUMNS, stores.map(rowOf), paint, widthMax),
      ...alike(stores).flatMap((group) => ["", ...storeLines(group, paint, widthMax)]),
      "",
      ...farmLines(report, address, paint).map((line) => cut(line, widthMax)),
      ...(tooFast === undefined ? [] : [paint("red", tooFast)]),
      ...(oneDisk ?? []).map((names) => paint("yellow", onOneDisk(names))),
      ...(proposal === undefined ? [] : ["", ...proposalLines(proposal, endpoints, paint)]),
    ],
  };
}

function onOneDisk(names: readonly string[]): string {
  return `on one disk, and lost together with it: ${names.join(", ")}`;
}

function errorView({ code, message }: { code: string; message: string }) {
  return { code, message };
}

function rowOf({ name, traits, measurement, error }: StoreReport): Cell[] {
  const first: Cell = { text: name, style: error === undefined ? "bold" : "red" };
  if (traits === undefined) return [first, { text: "-" }, { text: "-" }];
  const { kind, durable } = traits;
  const keeps: Cell = durable ? { text: "keeps all" } : { text: "may forget", style: "yellow" };
  if (measurement === undefined) return [first, { text: kind }, keeps];
  const { reads, writes } = measurement;
  return [first, { text: kind }, keeps, ...cells(reads), ...cells(writes), { text: String(reads.samples) }];
}

function cells(latencies: Latencies | undefined): Cell[] {
  if (latencies === undefined) return [{ text: "-" }, { text: "-" }, { text: "-" }];
  const { p50, p99, p999 } = latencies;
  return [p50, p99, p999].map((ms) => ({ text: fine(ms) }));
}

function fine(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  return ms < 100 ? `${ms.toFixed(1)} ms` : shortTime(ms);
}

/** Stores with equal results are shown together. */
function alike(stores: readonly StoreReport[]): StoreReport[][] {
  const groups = new Map<string, StoreReport[]>();
  for (const store of stores) {
    const key = JSON.stringify([store.findings.map(({ tried, ok }) => [tried, ok]), store.error?.message]);
    groups.set(key, [...(groups.get(key) ?? []), store]);
  }
  return [...groups.values()];
}

function storeLines(group: readonly StoreReport[], paint: Paint, widthMax: number): string[] {
  const [{ findings, error }] = group as [StoreReport];
  const names = group.map(({ name }) => name).join(", ");
  const lines = [paint("bold", cut(printable(names), widthMax))];
  findings.forEach(({ tried, ok }, index) => {
    const seen = new Set(group.map((store) => store.findings[index]!.seen));
    const mark = ok ? paint("green", "✓") : paint("red", "✗");
    lines.push(`  ${mark} ${cut(printable(`${tried}: ${[...seen].join(" / ")}`), widthMax - 4)}`);
  });
  // Unsuitable stores have already been reported.
  const isSaid = findings.some(({ ok }) => !ok);
  if (error !== undefined && !isSaid) lines.push(`  ${paint("red", "✗")} ${printable(error.message)}`);
  for (const limits of new Set(group.map(limitsOf)))
    if (limits !== undefined) lines.push(paint("dim", `    ${cut(limits, widthMax - 4)}`));
  return lines;
}

function limitsOf({ traits }: StoreReport): string | undefined {
  if (traits === undefined) return undefined;
  const { bytesMax, pollMs, delayMs } = traits;
  return `takes ${bytesMax} bytes; those who wait look every ${shortTime(pollMs)}; δ is ${shortTime(delayMs)} unless something else is said`;
}

function farmLines(
  { stores, plan, error, loopMs }: FarmReport,
  { ground }: FarmAddress,
  paint: Paint,
): string[] {
  const size = stores.length;
  const answered = stores.filter(({ id }) => id !== undefined).length;
  const majority = majorityOf(size);
  const lines = [
    `${answered} of ${size} stores answer; ${majority} are needed, so ${size - majority} may be missing`,
    `algorithm: ${algorithmOf(stores, ground)}`,
    `event loop of this process: late by at most ${fine(loopMs)}`,
  ];
  if (answered < majority) lines[0] = paint("red", lines[0]!);
  if (error !== undefined) return [...lines, paint("red", `farm: ${error.message}`)];
  if (answered === 0) return lines;
  if (plan === undefined || plan.kind === "unfounded" || stores.every(({ farm }) => farm === undefined))
    return [...lines, "farm: never used; the first use needs all stores"];
  const { generation, leaseMsMax, delayMsMax, newcomers } = plan;
  const recovering = stores.filter(({ farm }) => farm?.state === "recovering").map(({ name }) => name);
  lines.push(
    `farm: generation ${generation}, used with leases up to ${formatDuration(leaseMsMax)} and δ up to ${formatDuration(delayMsMax)}`,
  );
  if (recovering.length > 0)
    lines.push(paint("yellow", `recovering, does not count yet: ${recovering.join(", ")}`));
  if (newcomers.length > 0) {
    const names = newcomers.map((store) => stores[store]!.name).join(", ");
    lines.push(paint("yellow", `has forgotten, or is new, and will be let in after a wait: ${names}`));
  }
  const ids = stores.map(({ id }) => id ?? "-").join(" ");
  return [...lines, paint("dim", `markers: ${ids}`)];
}

function algorithmOf(stores: readonly StoreReport[], ground: FarmAddress["ground"]): string {
  if (ground === "flease") return "Flease on stores: safe while clocks are within maxClockSkew";
  const isSlotted = stores.some(({ traits }) => traits?.kind === "slotted");
  return isSlotted
    ? "the paper's lease: safe while operations take less than δ"
    : "the conditional lease: safe however long operations take";
}

function proposalLines(proposal: Proposal, endpoints: readonly string[], paint: Paint): string[] {
  const { maxStoreLatencyMs, ttlMaxMs, reasons } = proposal;
  const [delay, ttl] = [formatDuration(maxStoreLatencyMs), formatDuration(ttlMaxMs)];
  return [
    `proposed: ${paint("bold", `maxStoreLatency=${delay}`)} (δ), ${paint("bold", `ttlMax=${ttl}`)} (Δ)`,
    ...reasons.map((reason) => `  ${reason}`),
    // Never truncated: users copy this line.
    `  --endpoints '${proposedEndpoints(proposal, endpoints).join(",")}'`,
  ];
}

/** The given addresses, with the proposal on the first. */
function proposedEndpoints(
  { maxStoreLatencyMs, ttlMaxMs }: Proposal,
  endpoints: readonly string[],
): string[] {
  const bare = endpoints.map((endpoint) => {
    const [place = "", query = ""] = endpoint.split("?");
    const kept = query.split("&").filter((part) => part !== "" && !/^(?:ttlMax|maxStoreLatency)=/.test(part));
    return { place, kept };
  });
  return bare.map(({ place, kept }, index) => {
    const settings = [
      `maxStoreLatency=${formatDuration(maxStoreLatencyMs)}`,
      `ttlMax=${formatDuration(ttlMaxMs)}`,
    ];
    const query = [...kept, ...(index === 0 ? settings : [])].join("&");
    return query === "" ? place : `${place}?${query}`;
  });
}
