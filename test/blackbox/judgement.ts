import { spawnSync } from "node:child_process";
import type { FaultReport } from "../../packages/leasehold/src/testing/history/faults.js";
import type { HistoryReport } from "../../packages/leasehold/src/testing/history/report.js";
import { judgePath } from "./build.js";

/** The output of `leasehold check -o json`. */
export type Judgement = Omit<HistoryReport, "tenures" | "faults"> & {
  readonly tenures: number;
  readonly faults: readonly FaultReport[];
};

/** The output lists every violation, and there may be many. */
const outputBytesMax = 64 * 1024 * 1024;

/** Judges by the command, as users do with the same journals. */
export function judge(journals: readonly string[]): Judgement {
  const words = [judgePath, "check", "-o", "json", ...journals];
  const run = spawnSync(process.execPath, words, { encoding: "utf8", maxBuffer: outputBytesMax });
  if (run.error !== undefined) throw run.error;
  if (run.stdout === "") throw new Error(`leasehold check ended with ${run.status}: ${run.stderr}`);
  return JSON.parse(run.stdout) as Judgement;
}
