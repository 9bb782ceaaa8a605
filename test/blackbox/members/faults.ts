import { setTimeout as sleep } from "node:timers/promises";
import type { Actor } from "../actor.js";
import { nowNs } from "../journal.js";
import { type PlannedFault, pick } from "../plan.js";
import { ttlMs } from "../settings.js";
import { type Filter, cutBothWays, droppedAt, setFilter } from "../site.js";
import type { MembersStage } from "./stage.js";

/** The faults that happen while the members change, as in runs with leases. */
export const memberFaults = [
  "holder-killed",
  "holder-stopped",
  "member-killed",
  "member-killed-slow",
  "member-stopped",
  "one-way-cut",
  "full-cut",
] as const;
export type MemberFault = (typeof memberFaults)[number];

const lengthMs = { min: 0.4 * ttlMs, max: 1.5 * ttlMs };
const stoppedHolderMs = { min: 1.2 * ttlMs, max: 2 * ttlMs };

/** Injects one fault. Resolves with the number of packets that it dropped. */
export async function strike(stage: MembersStage, fault: PlannedFault<MemberFault>): Promise<number> {
  const { kind, random, length } = fault;
  const ofHolder = kind.startsWith("holder") || (kind.endsWith("cut") && random.next() < 0.5);
  const victim = ofHolder ? pick(stage.holders, random) : stage.someMember(random);
  const { min, max } = kind === "holder-stopped" ? stoppedHolderMs : lengthMs;
  const forMs = min + (max - min) * length;
  const mark = (phase: "begin" | "end"): void =>
    stage.journal.write({ event: "fault", phase, m: nowNs(), kind, target: victim.name });
  mark("begin");
  const dropped = await suffering(stage, kind, victim, forMs, random.next() < 0.5);
  mark("end");
  return dropped;
}

async function suffering(
  stage: MembersStage,
  kind: MemberFault,
  victim: Actor,
  forMs: number,
  inward: boolean,
): Promise<number> {
  switch (kind) {
    case "holder-killed":
    case "member-killed":
    case "member-killed-slow":
      await victim.kill();
      if (kind === "member-killed-slow") await sleep(forMs);
      stage.restart(victim);
      return 0;
    case "holder-stopped":
    case "member-stopped":
      victim.stop();
      await sleep(forMs);
      victim.continue();
      return 0;
    case "one-way-cut":
      return cutting(victim, { inPercent: inward ? 100 : 0, outPercent: inward ? 0 : 100 }, forMs);
    case "full-cut":
      return cutting(victim, cutBothWays, forMs);
  }
}

async function cutting({ place }: Actor, filter: Filter, forMs: number): Promise<number> {
  setFilter(place, filter);
  await sleep(forMs);
  const dropped = droppedAt(place);
  setFilter(place);
  return dropped;
}
