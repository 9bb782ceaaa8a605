import { setTimeout as sleep } from "node:timers/promises";
import type { Actor } from "../actor.js";
import { nowNs } from "../journal.js";
import { type PlannedFault, between, pick } from "../plan.js";
import { type Filter, setFilter } from "../site.js";
import { filesPort, leasePort, ttlMs, waitMsMax } from "./settings.js";
import type { FilesStage } from "./stage.js";

/** What can go wrong with nodes of files, in words that the journal and the summary use too. */
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

/** Filters of two faults would replace each other, one that is stopped goes on but once, and while a disk is filled again no other may be lost. */
export function mayMeet(one: FileFault, other: FileFault): boolean {
  if ([one, other].some((kind) => kind === "disk-emptied" || kind === "late-writes")) return false;
  return ofPackets.has(one) !== ofPackets.has(other);
}

/** Short enough for a primary to keep its lease, and long past its end. */
const lengthMs = { min: 0.4 * ttlMs, max: 2 * ttlMs };
/** A primary that is stopped finds out afterwards that there is another. */
const stopMs = { min: 1.2 * ttlMs, max: 2.2 * ttlMs };
const pilingUpMs = 150;
/** Its leases have run out by then. */
const takenOverMs = { min: 1.1 * ttlMs, max: 1.4 * ttlMs };
/** TCP repeats what was not acknowledged 0.8 s after its third try, and then after 1.6 s. */
const arrivingMs = { min: 200, max: 1_600 };
const lossPercent = { min: 20, max: 40 };

type Planned = PlannedFault<FileFault>;
type Strike = (stage: FilesStage, fault: Planned) => Promise<void>;

/** One fault of a plan, from its beginning to its end. */
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
  // A primary whose lease runs out while it still reaches all copies.
  "lease-cut": (stage, fault) =>
    filtering(stage, fault, [stage.busiest()], { ...bothWays(), port: leasePort }),
  // What a primary sends arrives late, and then another may be the primary.
  loss: (stage, fault) => {
    return filtering(stage, fault, stage.nodes, lossy(fault));
  },
  // A primary stands still whose writes have not left its machine; they arrive when another is the primary.
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
    // What two disks have of three must not be lost at once.
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

/** Mostly one that is the primary of many files. */
function victimOf(stage: FilesStage, { random }: Planned): Actor {
  return random.next() < 0.6 ? stage.busiest() : pick(stage.nodes, random);
}

/** Between two marks in the journal. */
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

/** Two of the nodes do not reach each other; the third reaches both. */
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
