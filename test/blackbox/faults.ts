import { setTimeout as sleep } from "node:timers/promises";
import type { Actor } from "./actor.js";
import { nowNs } from "./journal.js";
import { type FaultKind, type PlannedFault, between, pick } from "./plan.js";
import { rpcTimeoutMs, skewMs, ttlMs } from "./settings.js";
import { type Filter, cutBothWays, setFilter } from "./site.js";
import { type Stage, setOffset } from "./stage.js";

/** The shorter faults leave a lease held; the longest outlast it. */
const lengthMs = { min: 0.4 * ttlMs, max: 1.5 * ttlMs };
/** Long enough that a stopped holder finds another holder when it continues. */
const stoppedHolderMs = { min: 1.2 * ttlMs, max: 2 * ttlMs };
const flapMs = { min: 60, max: 400 };
const lossPercent = { min: 20, max: 40 };
/** Messages with this delay arrive after their sender has given up. */
const messageDelayMsMax = 1.5 * rpcTimeoutMs;
/** Short, since a process must not be restarted while its clock is behind its own earlier readings. */
const stepAheadMs = { min: 3 * skewMs, max: 2_500 };
const stepBackMs = { min: 3 * skewMs, max: 5 * 3_600_000 };

type Strike = (stage: Stage, fault: PlannedFault) => Promise<void>;

/** Injects one fault of a plan, from its beginning to its end. */
export async function strike(stage: Stage, fault: PlannedFault): Promise<void> {
  await strikes[fault.kind](stage, fault);
}

const strikes: Record<FaultKind, Strike> = {
  "holder-killed": (stage, { kind, random }) => restarting(stage, kind, [stage.someHolder(random)], 0),
  "holder-killed-slow": (stage, { kind, random, length }) =>
    restarting(stage, kind, [stage.someHolder(random)], lengthOf(length)),
  "member-killed": (stage, { kind, random }) => restarting(stage, kind, [pick(stage.members, random)], 0),
  "member-killed-slow": (stage, { kind, random, length }) =>
    restarting(stage, kind, [pick(stage.members, random)], lengthOf(length)),
  "all-members-killed": (stage, { kind }) => restarting(stage, kind, stage.actsAsMember, 0),

  "holder-stopped": (stage, { kind, random, length }) =>
    stopping(stage, kind, stage.someHolder(random), range(stoppedHolderMs, length)),
  "member-stopped": (stage, { kind, random, length }) =>
    stopping(stage, kind, pick(stage.members, random), lengthOf(length)),

  loss: async (stage, { kind, random, length }) => {
    const percent = Math.round(between(lossPercent.min, lossPercent.max, random));
    const filter = { inPercent: percent, outPercent: percent };
    const victims = [stage.someHolder(random), pick(stage.members, random), pick(stage.members, random)];
    await filtering(stage, kind, victims, filter, lengthOf(length));
  },
  "one-way-cut": async (stage, { kind, random, length }) => {
    const inward = random.next() < 0.5;
    const filter = { inPercent: inward ? 100 : 0, outPercent: inward ? 0 : 100 };
    await filtering(stage, kind, [someone(stage, random)], filter, lengthOf(length));
  },
  "full-cut": (stage, { kind, random, length }) =>
    filtering(stage, kind, [someone(stage, random)], cutBothWays, lengthOf(length)),
  flapping: async (stage, { kind, random, length }) => {
    const victim = someone(stage, random);
    await marked(stage, kind, victim.name, async () => {
      const end = performance.now() + lengthOf(length);
      while (performance.now() < end) {
        setFilter(victim.place, cutBothWays);
        await sleep(between(flapMs.min, flapMs.max, random));
        stage.lift(kind, victim.place);
        await sleep(between(flapMs.min, flapMs.max, random));
      }
    });
  },

  delay: (stage, { length }) => treating(stage, "delay", { delayMsMax: messageDelayMsMax }, length),
  duplication: (stage, { length }) =>
    treating(stage, "duplication", { duplicated: 0.5, delayMsMax: 2 * messageDelayMsMax }, length),
  reordering: (stage, { length }) =>
    treating(stage, "reordering", { reordered: 0.5, delayMsMax: messageDelayMsMax }, length),

  skew: (stage, { kind, random }) => marked(stage, kind, "everybody", async () => stage.spreadClocks(random)),
  "clock-step": async (stage, { kind, random, length }) => {
    const victim = someone(stage, random);
    const ahead = random.next() < 0.5;
    const byMs = ahead
      ? between(stepAheadMs.min, stepAheadMs.max, random)
      : -(stepBackMs.min * (stepBackMs.max / stepBackMs.min) ** random.next());
    await marked(stage, kind, victim.name, async () => {
      setOffset(victim.clock, byMs);
      await sleep(lengthOf(length));
      victim.clockUntilMs = performance.now() + Math.max(0, byMs) + skewMs;
      setOffset(victim.clock, 0);
    });
  },
};

/** Writes a journal entry before and after `body`. */
async function marked(
  stage: Stage,
  kind: FaultKind,
  target: string,
  body: () => Promise<void>,
): Promise<void> {
  stage.journal.write({ event: "fault", phase: "begin", m: nowNs(), kind, target });
  await body();
  stage.journal.write({ event: "fault", phase: "end", m: nowNs(), kind, target });
}

async function restarting(
  stage: Stage,
  kind: FaultKind,
  victims: readonly Actor[],
  awayMs: number,
): Promise<void> {
  const wrongForMs = Math.max(...victims.map(({ clockUntilMs }) => clockUntilMs)) - performance.now();
  if (wrongForMs > 0) await sleep(wrongForMs);
  await marked(stage, kind, victims.map(({ name }) => name).join(" "), async () => {
    await Promise.all(victims.map((victim) => victim.kill()));
    await sleep(awayMs);
    for (const victim of victims) stage.restart(victim);
  });
}

async function stopping(stage: Stage, kind: FaultKind, victim: Actor, forMs: number): Promise<void> {
  await marked(stage, kind, victim.name, async () => {
    victim.stop();
    await sleep(forMs);
    victim.continue();
  });
}

async function filtering(
  stage: Stage,
  kind: FaultKind,
  victims: readonly Actor[],
  filter: Filter,
  forMs: number,
): Promise<void> {
  await marked(stage, kind, victims.map(({ name }) => name).join(" "), async () => {
    for (const { place } of victims) setFilter(place, filter);
    await sleep(forMs);
    for (const { place } of victims) stage.lift(kind, place);
  });
}

type Treatment = keyof Stage["network"]["treated"];

/** Delays, duplicates or reorders all messages, in both directions. */
async function treating(
  stage: Stage,
  kind: Treatment,
  rule: Parameters<Stage["network"]["treat"]>[2],
  length: number,
): Promise<void> {
  await marked(stage, kind, "everybody", async () => {
    for (const member of stage.memberNames) {
      stage.network.treat("*", member, rule);
      stage.network.treat(member, "*", rule);
    }
    const before = stage.network.treated[kind];
    await sleep(lengthOf(length));
    stage.touch(kind, stage.network.treated[kind] - before);
    stage.network.heal();
  });
}

/** Picks a process, mostly a holder: holders are where exclusion can fail. */
function someone(stage: Stage, random: PlannedFault["random"]): Actor {
  return random.next() < 0.7 ? stage.someHolder(random) : pick(stage.members, random);
}

function lengthOf(length: number): number {
  return range(lengthMs, length);
}

function range({ min, max }: { readonly min: number; readonly max: number }, part: number): number {
  return min + (max - min) * part;
}
