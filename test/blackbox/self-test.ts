import { product, withPlanted } from "./build.js";
import type { FaultKind } from "./plan.js";
import type { Rule } from "../../packages/leasehold/src/testing/history/rules/violation.js";
import type { Progress } from "./progress.js";
import { type RunOptions, type RunResult, play } from "./run.js";
import { RunFolder } from "./run-folder.js";
import { forms, offsetMsMax, skewMs } from "./settings.js";

/** One check of the black box itself: a run with a mistake that it must find. */
interface SelfTest {
  readonly name: string;
  readonly run: Pick<RunOptions, "build" | "kinds" | "greedy" | "offsetMs" | "tasks">;
  /** The effect that the run must show, in words, and a check that it did. */
  readonly expects: string;
  readonly isMet: (result: RunResult) => boolean;
}

/** Long enough for some dozen tenures that end without a release. */
const minutes = 0.4;
const seed = 20;

const whatEndsTenures: readonly FaultKind[] = ["holder-stopped", "holder-stopped", "full-cut"];

/**
 * A clock that is off by more than twice the bound is certainly wrong. This is so far beyond it that messages
 * delayed by a second, as on a busy machine, still show it.
 */
const wrongClockMs = 20 * skewMs;
const wrongMember = "member-1";

const breaks =
  (rule: Rule) =>
  ({ judgement }: RunResult): boolean =>
    judgement.violations.some((violation) => violation.rule === rule);
const overlaps = breaks("overlap");

function countRules({ judgement }: RunResult): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { rule } of judgement.violations) counts[rule] = (counts[rule] ?? 0) + 1;
  return counts;
}

export const leasesSelfTests: readonly SelfTest[] = [
  {
    name: "P10: a holder that goes on after the end of its lease",
    run: { build: withPlanted("holderIgnoresExpiry"), kinds: whatEndsTenures },
    expects: "two holders at once are found",
    isMet: overlaps,
  },
  {
    name: "P5: no safety period, the steady clock not asked, system clocks apart but within their bound",
    run: {
      build: withPlanted("noSafetyPeriod", "rateTestOff"),
      kinds: ["full-cut"],
      // There are two holders only while the clocks are apart: another client must try just then.
      greedy: true,
      // The clocks of members are ahead of those of clients.
      offsetMs: (name) => (name.startsWith("client") ? -offsetMsMax : offsetMsMax),
    },
    expects: "two holders at once are found",
    isMet: overlaps,
  },
  {
    name: "a member whose system clock is wrong by more than its bound",
    run: {
      build: product,
      kinds: ["holder-killed"],
      offsetMs: (name) => (name === wrongMember ? wrongClockMs : 0),
    },
    expects: "it raises the alarm, and nothing is violated",
    isMet: ({ alarmed, judgement }) =>
      alarmed.includes(wrongMember) && judgement.alarms > 0 && judgement.verdict === "clean",
  },
];

export const formsSelfTests: readonly SelfTest[] = [
  {
    name: "a writer does not wait for current readers",
    run: { build: withPlanted("writerSkipsSlots"), kinds: ["holder-killed"], tasks: forms },
    expects: "a reader and a writer at once are found",
    isMet: overlaps,
  },
  {
    name: "a call without a mode does not look for readers",
    run: { build: withPlanted("plainIsNoWriter"), kinds: ["holder-killed"], tasks: forms },
    expects: "a reader and a writer at once are found",
    isMet: overlaps,
  },
  {
    name: "a call with another limit has slots of its own",
    run: { build: withPlanted("eachLimitHasItsSlots"), kinds: ["holder-killed"], tasks: forms },
    expects: "too many at once are found",
    isMet: breaks("too-many"),
  },
];

/** Runs all of them. The exit code is 0 only if each has shown what it must. */
export async function selfTest(
  tests: readonly SelfTest[],
  output: string,
  progress: Progress,
): Promise<number> {
  const results: object[] = [];
  let failed = 0;
  for (const { name, run, expects, isMet } of tests) {
    const folder = new RunFolder();
    const result = await play({ minutes, seed, members: 3, folder, ...run }, progress);
    progress.clear();
    const met = isMet(result);
    const found = countRules(result);
    const { tenures, alarms } = result.judgement;
    const seconds = Math.round(result.seconds);
    results.push({ name, expects, met, found, tenures, alarms, seconds });
    if (!met) {
      failed += 1;
      folder.keep();
    }
    if (output === "json") continue;
    const violations = Object.entries(found).map(([rule, count]) => `${count} × ${rule}`);
    const figures = [`${tenures} tenures`, `${alarms} alarms`, ...violations, `${seconds} s`].join(", ");
    const verdict = met ? "seen" : `NOT SEEN (journals: ${folder.path})`;
    process.stdout.write(`${verdict}: ${name}\n  ${expects}: ${figures}\n`);
  }
  if (output === "json") process.stdout.write(`${JSON.stringify({ failed, selfTests: results })}\n`);
  return failed === 0 ? 0 : 1;
}
