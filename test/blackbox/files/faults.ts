import { setTimeout as sleep } from "node:timers/promises";
import type { Actor } from "../actor.js";
import { nowNs } from "../journal.js";
import { type PlannedFault, between, pick } from "../plan.js";
import { type Filter, setFilter } from "../site.js";
import { filesPort, leasePort, ttlMs, waitMsMax } from "./settings.js";
import type { FilesStage } from "./stage.js";

/** The kinds of faults of nodes with files, by the names used in the journal and the summary. */
export const fileFaults = [
  "node-killed",
  "node-killed-slow",
  "all-nodes-killed",
  "node-stopped",
  "full-cut",
  "one-way-cut",
  "link-cut",
  "link-cut-one-way",
  "lease-cut",
  "loss",
  "late-writes",
  "disk-emptied",
] as const;
export type FileFault = (typeof fileFaults)[number];

const ofPackets: ReadonlySet<FileFault> = new Set<FileFault>([
  "full-cut",
  "one-way-cut",
  "link-cut",
  "link-cut-one-way",
  "lease-cut",
  "loss",
]);

/**
 * Filters of two faults would replace each other, a stopped process can be continued only once, and while an
 * emptied disk is filled again no other disk may be lost.
 */
export function mayMeet(one: FileFault, other: FileFault): boolean {
  if ([one, other].some((kind) => kind === "disk-emptied" || kind === "late-writes")) return false;
  return ofPackets.has(one) !== ofPackets.has(other);
}

/** The shorter faults leave a primary its lease; the longest outlast the lease. */
const lengthMs = { min: 0.4 * ttlMs, max: 2 * ttlMs };
/** Long enough that a stopped primary finds another primary when it continues. */
const stopMs = { min: 1.2 * ttlMs, max: 2.2 * ttlMs };
const pilingUpMs = 150;
/** The primary's leases have expired by then. */
const takenOverMs = { min: 1.1 * ttlMs, max: 1.4 * ttlMs };
/** TCP sends unacknowledged data again 0.8 s after its third try, and then after 1.6 s. */
const arrivingMs = { min: 200, max: 1_600 };
const lossPercent = { min: 20, max: 40 };

type Planned = PlannedFault<FileFault>;
type Strike = (stage: FilesStage, fault: Planned) => Promise<void>;

/** Injects one fault of a plan, from its beginning to its end. */
export async function strike(stage: FilesStage, fault: Planned): Promise<void> {
  await strikes[fault.kind](stage, fault);
}

const strikes: Record<FileFault, Strike> = {
  "node-killed": (stage, fault) => restarting(stage, fault, [victimOf(stage, fault)], 0),
  "node-killed-slow": (stage, fault) => restarting(stage, fault, [victimOf(stage, fault)], lengthOf(fault)),
  "all-nodes-killed": (stage, fault) => restarting(stage, fault, stage.nodes, 0),
  "node-stopped": async (stage, fault) => {
    const victim = victimOf(stage, fault);
    await marked(stage, fault, [victim], async () => {
      victim.stop();
      await sleep(range(stopMs, fault.length));
      victim.continue();
    });
  },
  "full-cut": (stage, fault) => filtering(stage, fault, [victimOf(stage, fault)], bothWays()),
  "one-way-cut": (stage, fault) => filtering(stage, fault, [victimOf(stage, fault)], oneWay(fault)),
  "link-cut": (stage, fault) => cuttingLink(stage, fault, bothWays()),
  "link-cut-one-way": (stage, fault) => cuttingLink(stage, fault, oneWay(fault)),
  // A primary loses its lease while it still reaches all copies.
  "lease-cut": (stage, fault) =>
    filtering(stage, fault, [stage.busiest()], { ...bothWays(), port: leasePort }),
  // The messages of a primary arrive late, possibly when another is the primary.
  loss: (stage, fault) => {
    return filtering(stage, fault, stage.nodes, lossy(fault));
  },
  // A primary is stopped while its writes are still on its machine; they arrive when another is the primary.
  "late-writes": async (stage, fault) => {
    const victim = stage.busiest();
    await marked(stage, fault, [victim], async () => {
      setFilter(victim.place, { inPercent: 0, outPercent: 100, port: filesPort });
      await sleep(pilingUpMs);
      victim.stop();
      await sleep(range(takenOverMs, fault.length));
      stage.lift(fault.kind, victim.place);
      await sleep(range(arrivingMs, fault.length));
      victim.continue();
    });
  },
  "disk-emptied": async (stage, fault) => {
    // Some data may be on only two of three disks, which must not both be lost.
    await stage.whole(waitMsMax);
    const victim = victimOf(stage, fault);
    await marked(stage, fault, [victim], async () => {
      await victim.kill();
      stage.emptyDisk(victim);
      stage.restart(victim);
      await stage.whole(waitMsMax);
    });
  },
};

function lossy({ random }: Planned): Filter {
  const percent = Math.round(between(lossPercent.min, lossPercent.max, random));
  return { ...bothWays(percent), port: filesPort };
}

const bothWays = (percent = 100): Filter => ({ inPercent: percent, outPercent: percent });

function oneWay({ random }: Planned): Filter {
  const inward = random.next() < 0.5;
  return { inPercent: inward ? 100 : 0, outPercent: inward ? 0 : 100 };
}

/** Picks a node, mostly the primary of the most files. */
function victimOf(stage: FilesStage, { random }: Planned): Actor {
  return random.next() < 0.6 ? stage.busiest() : pick(stage.nodes, random);
}

/** Writes a journal entry before and after `body`. */
async function marked(
  stage: FilesStage,
  { kind }: Planned,
  victims: readonly Actor[],
  body: () => Promise<void>,
): Promise<void> {
  const target = victims.map(({ name }) => name).join(" ");
  stage.journal.write({ event: "fault", phase: "begin", m: nowNs(), kind, target });
  await body();
  stage.journal.write({ event: "fault", phase: "end", m: nowNs(), kind, target });
  stage.count(kind);
}

async function restarting(
  stage: FilesStage,
  fault: Planned,
  victims: readonly Actor[],
  awayMs: number,
): Promise<void> {
  await marked(stage, fault, victims, async () => {
    await Promise.all(victims.map((victim) => victim.kill()));
    await sleep(awayMs);
    for (const victim of victims) stage.restart(victim);
  });
}

async function filtering(
  stage: FilesStage,
  fault: Planned,
  victims: readonly Actor[],
  filter: Filter,
): Promise<void> {
  await marked(stage, fault, victims, async () => {
    for (const { place } of victims) setFilter(place, filter);
    await sleep(lengthOf(fault));
    for (const { place } of victims) stage.lift(fault.kind, place);
  });
}

/** Cuts two nodes off from each other; the third reaches both. */
async function cuttingLink(stage: FilesStage, fault: Planned, filter: Filter): Promise<void> {
  const victim = stage.busiest();
  const other = pick(
    stage.nodes.filter((node) => node !== victim),
    fault.random,
  );
  await filtering(stage, fault, [victim], { ...filter, peer: other.place.address });
}

function lengthOf({ length }: Planned): number {
  return range(lengthMs, length);
}

function range({ min, max }: { readonly min: number; readonly max: number }, part: number): number {
  return min + (max - min) * part;
}
