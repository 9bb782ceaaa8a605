import { coreLivenessInvariants } from "../../../sim/core/invariants.js";
import { loadPackage } from "../../runtime/optional-package.js";
import { usageError } from "../common/failure.js";
import { packageVersion } from "../common/version.js";
import { type Run, countsOf, simRuns } from "./sim-storage.js";
import type { SimCommandOptions } from "./sim.js";

/** `leasehold sim --ground core`: random bad days of a consistent core. The seed decides everything in a run. */
export async function simCore(options: SimCommandOptions): Promise<number> {
  if (options.mode !== undefined || options.without !== undefined)
    throw usageError("--mode and --without are not there for --ground core");
  const { coreFailureText, simulateCore } = await loadPackage(
    "@bufbuild/protobuf",
    "leasehold sim --ground core",
    () => import("../../../sim/core/run.js"),
  );
  const replay = (seed: number) => `leasehold sim --ground core --seed ${seed}@${packageVersion()} --story`;
  const run = (seed: number, story: ((line: string) => void) | undefined): Run => {
    const result = simulateCore({ seed, story });
    const { runs: _runs, events, undecided: _undecided, ...counts } = { ...result.counters };
    const done = { events, counts: countsOf(counts), traceHash: result.traceHash };
    if (result.violation === undefined) return done;
    const { invariant } = result.violation;
    const violation = { invariant, text: coreFailureText(result), replay: replay(seed) };
    return { ...done, violation, isStuck: coreLivenessInvariants.has(invariant) };
  };
  return simRuns(options, { ground: "core", showsAll: true, run, replay });
}
