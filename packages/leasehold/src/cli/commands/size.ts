import { parseDuration } from "../../lease/duration.js";
import { exitCode } from "../common/exit-codes.js";
import { usageError } from "../common/failure.js";
import { type SharedOptions, settingsOf } from "../common/settings.js";
import { present } from "../output/present.js";
import { tableLines } from "../output/table.js";
import { figures } from "./size-figures.js";

export interface SizeOptions extends SharedOptions {
  readonly leases: string;
  readonly ttl: string;
  readonly survive: string;
}

/** A lease is renewed after a third of its ttl. */
const renewalsPerTtl = 3;
/** The margins: a process may use half of one processor, and gets 1.5 times the measured memory. */
const loadMax = 0.5;
const memoryFactor = 1.5;
/** The number of servers whose processor time was measured together. */
const serversMeasured = 3;

/** The needs of leases that are always held. A figure is absent if it was not measured. */
interface Size {
  readonly clusters: number;
  readonly serversEach: number;
  readonly memoryBytes?: number;
  readonly processors?: number;
  readonly bytesPerS?: number;
  readonly diskBytes?: number;
  readonly clients?: number;
  readonly clientMemoryBytes?: number;
}

export function sizesOf(
  leases: number,
  ttlMs: number,
  survive: number,
): { [Ground in "flease" | "core" | "delta"]: Size } {
  const renewalsPerS = (leases * renewalsPerTtl * 1_000) / ttlMs;
  const serversEach = 2 * survive + 1;
  const sizeOf = (ground: "flease" | "core"): Size => {
    const { serverBytes, serverUs, processBytes, wireBytes, clientBytes, clientUs } = figures[ground];
    // Every Flease member takes part in every renewal. A core's renewals end at its leader, which is assumed
    // to do all the work.
    const share = ground === "core" ? 1 : 1 / serversMeasured;
    const processors = (renewalsPerS * serverUs * share) / 1e6;
    const clusters = Math.max(1, Math.ceil(processors / loadMax));
    const clients = Math.max(1, Math.ceil((renewalsPerS * clientUs) / 1e6 / loadMax));
    return {
      clusters,
      serversEach,
      memoryBytes: memoryFactor * (processBytes + (leases / clusters) * serverBytes),
      processors: processors / clusters,
      bytesPerS: (renewalsPerS / clusters) * wireBytes * share,
      // Flease members keep leases only in memory.
      ...(ground === "flease" ? { diskBytes: 0 } : {}),
      clients,
      clientMemoryBytes: (memoryFactor * leases * clientBytes) / clients,
    };
  };
  const delta = { clusters: 1, serversEach, diskBytes: leases * figures.delta.cellBytes };
  return { flease: sizeOf("flease"), core: sizeOf("core"), delta };
}

/** `leasehold size`: servers, memory, network and disks for a number of leases, from measured figures. */
export function size(options: SizeOptions): number {
  const { output } = settingsOf(options);
  const leases = numberOf(options.leases, "--leases", 1, 1e12);
  const survive = numberOf(options.survive, "--survive", 0, 3);
  const ttlMs = parseDuration(options.ttl, "--ttl");
  if (ttlMs === 0) throw usageError("--ttl is longer than 0");
  const { flease, core, delta } = sizesOf(leases, ttlMs, survive);
  const { measured, machine, networkMeasured, networkMachine } = figures;
  const row = (title: string, textOf: (found: Size) => string): { text: string }[] =>
    [title, ...[flease, core, delta].map(textOf)].map((text) => ({ text }));
  const columns = ["OF EACH", "FLEASE", "CORE", "STORES"].map((title, at) =>
    at === 0 ? { title } : { title, align: "right" as const },
  );
  const rows = [
    row("clusters x servers", (found) => `${found.clusters} x ${found.serversEach}`),
    row("server: memory", ({ memoryBytes }) => bytes(memoryBytes)),
    row("server: processors", ({ processors }) => processors?.toFixed(2) ?? "-"),
    row("server: network", ({ bytesPerS }) => bytes(bytesPerS, "/s")),
    row("server: disk", ({ diskBytes }) => (diskBytes === 0 ? "none" : bytes(diskBytes))),
    row("clients, at least", ({ clients }) => String(clients ?? "-")),
    row("client: memory of leases", ({ clientMemoryBytes }) => bytes(clientMemoryBytes)),
  ];
  present(output, {
    document: { flease, core, delta, measured, machine, networkMeasured, networkMachine },
    table: (paint, widthMax) => [
      ...tableLines(columns, rows, paint, widthMax),
      `Leases and processor time measured ${measured} on ${machine}; network, cells and bare`,
      `processes ${networkMeasured} on ${networkMachine}. Margins: half of a processor, half`,
      "as much memory again. A dash was not measured. A core's leader is taken to do the work of all",
      "its servers: fewer clusters may do. Measure your own before you rely on it.",
    ],
  });
  return exitCode("ok");
}

function numberOf(text: string, option: string, min: number, max: number): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < min || value > max)
    throw usageError(`${option} is a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`);
  return value;
}

function bytes(value: number | undefined, per = ""): string {
  if (value === undefined) return "-";
  const [unit, factor] = value >= 1e9 ? ["GB", 1e9] : value >= 1e6 ? ["MB", 1e6] : (["kB", 1e3] as const);
  return `${Number((value / Number(factor)).toPrecision(2))} ${unit}${per}`;
}
