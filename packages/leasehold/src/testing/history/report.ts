import type { FaultReport } from "./faults.js";
import type { Tenure } from "./journals/tenures.js";
import type { Violation } from "./rules/violation.js";

/** The judge's findings. */
export interface HistoryReport {
  /** `void`: nothing was violated, but nothing was tested either. */
  readonly verdict: "clean" | "violated" | "void";
  /** At most a thousand of them. */
  readonly violations: readonly Violation[];
  readonly voidBecause: readonly string[];
  readonly journals: number;
  /** In the order of their certain starts. */
  readonly tenures: readonly Tenure[];
  /** Successions of different holders without a release, and after one. */
  readonly takeovers: number;
  readonly handovers: number;
  readonly renewals: number;
  readonly samples: number;
  /**
   * Pairs of tenures whose outermost stamps overlap, without proof. Near zero unless processes were stopped
   * in a look.
   */
  readonly inconclusive: number;
  /** First looks after a pause with a takeover that correctly found the lease lost. */
  readonly lossesFoundAfterPause: number;
  /** Operations on guarded resources, as their requesters report them. */
  readonly operations: { readonly accepted: number; readonly refused: number; readonly unknown: number };
  /** The same, as the resources report them. */
  readonly decisions: { readonly accepted: number; readonly refused: number };
  readonly boots: number;
  readonly alarms: number;
  readonly troubles: number;
  /** By kind, in alphabetical order. */
  readonly faults: readonly FaultReport[];
}

/** The report's figures in one line, and each violation in one more. */
export function describeReport(report: HistoryReport): string {
  const { accepted, refused } = report.operations;
  const figures =
    `${report.verdict}: ${report.tenures.length} tenures, ${report.takeovers} takeovers, ` +
    `${report.handovers} handovers, ${report.renewals} renewals, ${report.samples} samples, ` +
    `${accepted + refused} operations, ${report.inconclusive} inconclusive`;
  const violations = report.violations.map((violation) => `${violation.rule}: ${violation.text}`);
  return [figures, ...report.voidBecause, ...violations].join("\n");
}
