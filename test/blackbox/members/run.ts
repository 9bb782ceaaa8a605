import { setTimeout as sleep } from "node:timers/promises";
import { Xorshift } from "../../../packages/leasehold/src/common/xorshift.js";
import type { Build } from "../build.js";
import { type Judgement, judge } from "../judgement.js";
import { planRounds } from "../plan.js";
import type { Progress } from "../progress.js";
import type { RunFolder } from "../run-folder.js";
import { recoveryMs, ttlMs, waitMsMax } from "../settings.js";
import { type Change, type ChangeCount, Changes } from "./changes.js";
import { type MemberFault, memberFaults, strike } from "./faults.js";
import { MembersStage } from "./stage.js";

export interface MembersRunOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly build: Build;
  readonly folder: RunFolder;
}

/** The result of a run with changing members. */
export interface MembersSummary {
  readonly verdict: "clean" | "violated" | "void";
  readonly why: readonly string[];
  readonly seed: number;
  readonly seconds: number;
  readonly changes: Readonly<Record<Change, ChangeCount>>;
  /** Why commands failed, without numbers. */
  readonly reasons: readonly string[];
  readonly view: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly dropped: number;
  readonly tenures: number;
  readonly takeovers: number;
  readonly handovers: number;
  readonly renewals: number;
  readonly operations: Judgement["operations"];
}

const calmMs = { min: 0.5 * ttlMs, max: 2 * ttlMs };
const lookEveryMs = 10;
const minutesOfCloseLooks = 10;
/** A run of two minutes or more with fewer changes proves nothing. */
const changesMin = 10;
const minutesThatShowChanges = 2;

/**
 * Changes members while processes are killed, stopped and cut off and clients go on. The judge knows nothing
 * of members.
 */
export async function playMembers(options: MembersRunOptions, progress: Progress): Promise<MembersSummary> {
  const { seed, minutes, build, folder } = options;
  const startedMs = performance.now();
  const run = `${seed}-${process.pid}-${Date.now()}`;
  const close = lookEveryMs * Math.max(1, minutes / minutesOfCloseLooks);
  const stage = new MembersStage({ run, folder: folder.path, seed, build, lookEveryMs: close });
  await stage.open(waitMsMax);
  await sleep(recoveryMs);
  const changes = new Changes(stage, build, folder.path, new Xorshift(seed ^ 0xc4a6e));
  const over = new AbortController();
  const changing = changes.run(over.signal);
  const faults: Record<MemberFault, number> = Object.fromEntries(
    memberFaults.map((kind) => [kind, 0]),
  ) as never;
  let dropped = 0;
  const plan = planRounds(seed, memberFaults, () => false);
  const endMs = startedMs + minutes * 60_000;
  for (let fault = plan.next().value; performance.now() < endMs; fault = plan.next().value) {
    progress.say(
      (performance.now() - startedMs) / (endMs - startedMs),
      `view ${changes.viewNumber}: ${fault.kind}`,
    );
    dropped += await strike(stage, fault);
    faults[fault.kind] += 1;
    await sleep(calmMs.min + (calmMs.max - calmMs.min) * fault.calm);
  }
  over.abort();
  stage.heal();
  await changing;
  await stage.settled(waitMsMax);
  await sleep(recoveryMs + ttlMs);
  await stage.close();
  progress.say(1, "reading the journals");
  const judgement = judge(folder.journals());
  return summaryOf(judgement, stage, changes, { seed, minutes, faults, dropped, startedMs });
}

interface Played {
  readonly seed: number;
  readonly minutes: number;
  readonly startedMs: number;
  readonly faults: Record<MemberFault, number>;
  readonly dropped: number;
}

function summaryOf(
  judgement: Judgement,
  { accidents }: MembersStage,
  { counts, reasons, viewNumber }: Changes,
  { seed, minutes, startedMs, faults, dropped }: Played,
): MembersSummary {
  const { tenures, takeovers, handovers, renewals, operations } = judgement;
  const { add, remove, replace } = counts;
  const done = add.done + remove.done + replace.done;
  const violations = judgement.violations.map(({ rule, text }) => `${rule}: ${text}`);
  const voidBecause = [
    ...judgement.voidBecause,
    ...(minutes >= minutesThatShowChanges && done < changesMin ? [`only ${done} changes were done`] : []),
    ...(dropped === 0 ? ["no cut has dropped anything"] : []),
    ...accidents,
  ];
  return {
    verdict: violations.length > 0 ? "violated" : voidBecause.length > 0 ? "void" : "clean",
    why: [...violations, ...voidBecause],
    seed,
    seconds: Math.round((performance.now() - startedMs) / 1_000),
    changes: counts,
    reasons: [...reasons],
    view: viewNumber,
    faults,
    dropped,
    tenures,
    takeovers,
    handovers,
    renewals,
    operations,
  };
}

export function membersSummaryLines(summary: MembersSummary): string[] {
  const { changes, faults, operations } = summary;
  const counts = Object.entries(changes).map(
    ([kind, { done, failed }]) => `${kind} ${done} (${failed} failed)`,
  );
  return [
    `${summary.verdict}: seed ${summary.seed}, ${summary.seconds} s`,
    ...summary.why.map((one) => `  ${one}`),
    `  changes: ${counts.join(", ")}; view ${summary.view}`,
    ...summary.reasons.map((reason) => `    ${reason}`),
    `  faults: ${Object.entries(faults)
      .map(([kind, count]) => `${count} ${kind}`)
      .join(", ")}; ${summary.dropped} packets dropped`,
    `  ${summary.tenures} tenures: ${summary.takeovers} takeovers, ${summary.handovers} hand-overs, ` +
      `${summary.renewals} renewals`,
    `  ${operations.accepted} operations accepted, ${operations.refused} refused, ${operations.unknown} without answer`,
  ];
}
