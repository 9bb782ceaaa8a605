import { FaultLog, reportFaults } from "./faults.js";
import type { HistoryEntry, HistoryHeader } from "./journals/format.js";
import { type Halt, InterventionLog } from "./journals/interventions.js";
import { type HistoryError, JournalReader } from "./journals/journal.js";
import type { Refuse } from "./journals/parse.js";
import type { HistoryReport } from "./report.js";
import { findLateAcceptances } from "./rules/acceptances.js";
import { findFalseEndings } from "./rules/endings.js";
import { GuardLog } from "./rules/guard.js";
import { findOverlaps } from "./rules/overlaps.js";
import { findOvercrowding } from "./rules/pools.js";
import { judgePauses } from "./rules/pauses.js";
import { findUnexplainedRefusals } from "./rules/refusals.js";
import { findTokenFaults } from "./rules/tokens.js";
import { type Tenure, TenureIndex, byCertainStart, successors, wasInterrupted } from "./journals/tenures.js";
import { type Violation, violationsMax } from "./rules/violation.js";

/**
 * Judges what the journals of many processes prove about leases. A violation is reported only if every choice
 * of instants between the stamps contradicts the rule, so there are no false alarms. Journals may be read one
 * after the other or all at once, in any order and in pieces of any length; memory depends on the number of
 * tenures and faults, not on that of the lines.
 *
 * @example
 * ```ts
 * import { HistoryJudge, historyLine } from "leasehold/testing";
 *
 * const judge = new HistoryJudge();
 * const journal = judge.journal("holder-1.journal"); // the name is for messages
 * journal.feed(historyLine({ event: "history", version: 1, run: "r1", clock: "here", by: "holder-1" }));
 * journal.feed(historyLine({ event: "boot", m: process.hrtime.bigint(), pid: process.pid }));
 * journal.end();
 * judge.report().verdict; // "void": nothing was put to the test
 * ```
 */
export class HistoryJudge {
  readonly #tenures = new TenureIndex();
  readonly #interventions = new InterventionLog();
  readonly #faults = new FaultLog();
  readonly #guard = new GuardLog();
  readonly #counts = { samples: 0, boots: 0, alarms: 0, troubles: 0, accepted: 0, refused: 0, unknown: 0 };
  #first: { header: HistoryHeader; source: string } | undefined;
  /** The journal of each writer. */
  readonly #writers = new Map<string, string>();
  /** Journals that have not been ended. */
  readonly #open = new Set<JournalReader>();
  #refusal: HistoryError | undefined;

  /** Starts reading one journal. `source` is its name in messages, such as its path. */
  journal(source: string): JournalReader {
    const reader = new JournalReader(source, {
      header: (header, refuse) => this.#check(header, source, refuse),
      entry: (entry, refuse) => this.#take(entry, source, refuse),
      refused: (error) => (this.#refusal ??= error),
      ended: () => this.#open.delete(reader),
    });
    this.#open.add(reader);
    return reader;
  }

  /**
   * The verdict on all journals read so far.
   *
   * @throws HistoryError if one of them was refused; nothing is judged then.
   * @throws Error if one of them has not been read to its end.
   */
  report(): HistoryReport {
    if (this.#refusal !== undefined) throw this.#refusal;
    if (this.#open.size > 0) throw new Error(`${this.#open.size} journals have not been read to their end`);
    const byResource = this.#tenures.byResource();
    const halts = this.#interventions.halts();
    const verdict = judgeResources(byResource, this.#interventions, halts);
    const crowds = findOvercrowding([...byResource.values()].flat());
    const violations = [...verdict.violations, ...crowds, ...this.#guard.violations].slice(0, violationsMax);
    const tenures = [...byResource.values()].flat().sort(byCertainStart);
    const renewals = tenures.reduce((sum, tenure) => sum + tenure.renewals, 0);
    const { takeovers, handovers, inconclusive, lossesFoundAfterPause } = verdict;
    const voidBecause = [
      ...(takeovers === 0 ? ["no holder was replaced without having released"] : []),
      ...(renewals === 0 ? ["no lease was renewed"] : []),
    ];
    const { samples, boots, alarms, troubles, ...operations } = this.#counts;
    return {
      verdict: violations.length > 0 ? "violated" : voidBecause.length > 0 ? "void" : "clean",
      violations,
      voidBecause,
      journals: this.#writers.size,
      tenures,
      takeovers,
      handovers,
      renewals,
      samples,
      inconclusive,
      lossesFoundAfterPause,
      operations,
      decisions: { accepted: this.#guard.accepted, refused: this.#guard.refused },
      boots,
      alarms,
      troubles,
      faults: reportFaults(this.#faults, halts, byResource),
    };
  }

  #check(header: HistoryHeader, source: string, refuse: Refuse): void {
    const { run, clock, by } = header;
    const first = (this.#first ??= { header, source });
    if (run !== first.header.run)
      throw refuse(`its run is ${run}, while that of ${first.source} is ${first.header.run}`);
    if (clock !== first.header.clock)
      throw refuse(`its clock is ${clock}, while that of ${first.source} is ${first.header.clock}`);
    const other = this.#writers.get(by);
    if (other !== undefined) throw refuse(`its writer is ${by}, as in ${other}; each writer has one journal`);
    this.#writers.set(by, source);
  }

  #take(entry: HistoryEntry, source: string, refuse: Refuse): void {
    let problem: string | undefined;
    switch (entry.event) {
      case "sample":
        this.#counts.samples += 1;
        problem = this.#tenures.addSample(entry);
        break;
      case "release":
      case "lost":
        problem = this.#tenures.addEnding(entry);
        break;
      case "op":
        this.#counts[entry.result] += 1;
        problem = this.#tenures.addOperation(entry);
        break;
      case "accepted":
      case "refused":
        problem = this.#guard.add(entry, source);
        if (entry.event === "refused") this.#tenures.addRefusal(entry.resource, entry.token, entry.m);
        break;
      case "killed":
      case "stopped":
      case "continued":
        this.#interventions.add(entry);
        break;
      case "fault":
        problem = this.#faults.add(entry);
        break;
      case "boot":
        this.#counts.boots += 1;
        break;
      case "alarm":
        this.#counts.alarms += 1;
        break;
      case "trouble":
        this.#counts.troubles += 1;
        break;
      case "ready":
        break;
    }
    if (problem !== undefined) throw refuse(problem);
  }
}

type ResourcesVerdict = Pick<
  HistoryReport,
  "violations" | "takeovers" | "handovers" | "inconclusive" | "lossesFoundAfterPause"
>;

function judgeResources(
  byResource: ReadonlyMap<string, readonly Tenure[]>,
  interventions: InterventionLog,
  halts: readonly Halt[],
): ResourcesVerdict {
  const continuations = interventions.continuations();
  const found: Violation[][] = [];
  const counts = { takeovers: 0, handovers: 0, inconclusive: 0, lossesFoundAfterPause: 0 };
  for (const tenures of byResource.values()) {
    const overlaps = findOverlaps(tenures);
    const pauses = judgePauses(tenures, continuations);
    counts.inconclusive += overlaps.inconclusive;
    counts.lossesFoundAfterPause += pauses.lossesFound;
    found.push(
      overlaps.violations,
      findTokenFaults(tenures),
      findFalseEndings(tenures),
      pauses.violations,
      findLateAcceptances(tenures),
      findUnexplainedRefusals(tenures, halts),
    );
    for (const [index, next] of successors(tenures).entries()) {
      const tenure = tenures[index]!;
      if (next === undefined || next.incarnation === tenure.incarnation) continue;
      if (wasInterrupted(tenure)) counts.takeovers += 1;
      else counts.handovers += 1;
    }
  }
  return { ...counts, violations: found.flat() };
}

/**
 * Judges complete journals at once, given as texts keyed by their names for messages.
 *
 * @throws HistoryError when one of them is invalid; its message begins with the name and the number of the
 * line.
 * @example
 * ```ts
 * import { checkHistory, describeReport } from "leasehold/testing";
 *
 * const header = (by: string) => `{"event":"history","version":1,"run":"r1","clock":"here","by":"${by}"}\n`;
 * const about = '"remainingMs":900,"incarnation":"a.1","resource":"reports","token":"7","pid":1';
 * const report = checkHistory({
 *   "a.journal": header("a") + `{"event":"sample","m1":"10","m2":"11","ok":true,${about}}\n`,
 *   "arena.journal": header("arena") + '{"event":"killed","m":"12","pid":1}\n',
 * });
 * describeReport(report); // void: 1 tenures, 0 takeovers, …
 * ```
 */
export function checkHistory(journals: Readonly<Record<string, string>>): HistoryReport {
  const judge = new HistoryJudge();
  for (const [source, text] of Object.entries(journals)) {
    const journal = judge.journal(source);
    journal.feed(text);
    journal.end();
  }
  return judge.report();
}
