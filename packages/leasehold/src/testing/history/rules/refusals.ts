import type { Nanoseconds } from "../journals/format.js";
import type { Halt } from "../journals/interventions.js";
import { apartMs } from "../journals/nanoseconds.js";
import { type Tenure, certainEnd, expiryShown } from "../journals/tenures.js";
import { type Violation, nameOf } from "./violation.js";

/**
 * The guarded resource refuses a token only when its tenure is over, so the journals must show why that is
 * possible: it was released, found or reported lost, had expired, or its process was stopped or killed. Only
 * the first refusal needs a reason, which also explains later ones.
 */
export function findUnexplainedRefusals(tenures: readonly Tenure[], halts: readonly Halt[]): Violation[] {
  return tenures.flatMap((tenure) => {
    const { resource, refusedAt } = tenure;
    if (refusedAt === undefined) return [];
    const problem = problemOf(tenure, refusedAt, halts);
    if (problem === undefined) return [];
    return [{ rule: "refusal-unexplained", resource, text: `${nameOf(tenure)} was refused ${problem}` }];
  });
}

function problemOf(tenure: Tenure, refusedAt: Nanoseconds, halts: readonly Halt[]): string | undefined {
  const end = certainEnd(tenure);
  if (refusedAt <= end) return `${apartMs(refusedAt, end)} ms before its certain end`;
  if (tenure.releasedAt !== undefined && tenure.releasedAt <= refusedAt) return undefined;
  if (tenure.gone !== undefined || tenure.reportedLost) return undefined;
  if (expiryShown(tenure) <= refusedAt) return undefined;
  if (halts.some((halt) => halt.pid === tenure.pid && couldHide(halt, end, refusedAt))) return undefined;
  return `${apartMs(end, refusedAt)} ms after it was held, without a release, loss, expiry or pause`;
}

/** A killed process can no longer record its losses. */
function couldHide({ kind, from, to }: Halt, end: Nanoseconds, refusedAt: Nanoseconds): boolean {
  return kind === "killed" || (from <= refusedAt && (to === undefined || to >= end));
}
