import type { FaultReport } from "./faults.js";
import type { Tenure } from "./journals/tenures.js";
import type { Violation } from "./rules/violation.js";

/** The judge's findings. */
export interface HistoryReport {
  /** `void`: nothing was violated, but nothing was tested either. */
  readonly verdict: "clean" | "violated" | "void";
  /** At most a thousand violations. */
  readonly violations: readonly Violation[];
  readonly voidBecause: readonly string[];
  readonly journals: number;
  /** The tenures in the order of their certain starts. */
  readonly tenures: readonly Tenure[];
  /** The number of times a different holder followed without a release, and after one. */
  readonly takeovers: number;
  readonly handovers: number;
  readonly renewals: number;
  readonly samples: number;
  /**
   * Pairs of tenures whose outermost stamps overlap, which proves nothing. Near zero unless processes were
   * stopped during a look.
   */
  readonly inconclusive: number;
  /** The number of first looks after a pause with a takeover that correctly found the lease lost. */
  readonly lossesFoundAfterPause: number;
  /** Operations on guarded resources, as reported by the requesters. */
  readonly operations: { readonly accepted: number; readonly refused: number; readonly unknown: number };
  /** The same, as reported by the resources. */
  readonly decisions: { readonly accepted: number; readonly refused: number };
  readonly boots: number;
  readonly alarms: number;
  readonly troubles: number;
  /** By kind, in alphabetical order. */
  readonly faults: readonly FaultReport[];
}

/** The report's figures in one line, followed by a line for each violation. */
export function describeReport(report: HistoryReport): string {
  const { accepted, refused } = report.operations;
  const figures =
    `${report.verdict}: ${report.tenures.length} tenures, ${report.takeovers} takeovers, ` +
    `${report.handovers} handovers, ${report.renewals} renewals, ${report.samples} samples, ` +
    `${accepted + refused} operations, ${report.inconclusive} inconclusive`;
  const violations = report.violations.map((violation) => `${violation.rule}: ${violation.text}`);
  return [figures, ...report.voidBecause, ...violations].join("\n");
}
