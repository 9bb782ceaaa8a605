import { type StorageSimResult, simulateStorage, storageFailureText } from "../../sim/storage/run.js";
import { StorageCounters } from "../../sim/storage/counters.js";
import { livenessInvariants } from "../../sim/storage/violation.js";
import { exitCode } from "../exit-codes.js";
import { usageError } from "../failure.js";
import { type Presentation, present } from "../output/present.js";
import { settingsOf } from "../settings.js";
import { packageVersion } from "../version.js";
import { Batch, countLines, simulatorFailed } from "./sim-batch.js";
import type { SimCommandOptions } from "./sim.js";

interface Summary {
  readonly version: string;
  readonly firstSeed: number;
  readonly runs: number;
  readonly events: number;
  readonly seconds: number;
  readonly counters: StorageCounters;
  /** Of the only run. */
  readonly traceHash?: string;
  readonly story?: readonly string[];
  readonly violation?: { readonly invariant: string; readonly text: string; readonly replay: string };
}

/** `leasehold sim --ground delta`: random runs of the algorithms on shared storage. The seed decides which, and all else. */
export function simStorage(options: SimCommandOptions): number {
  const { output } = settingsOf(options);
  if (options.mode !== undefined || options.without !== undefined)
    throw usageError("--mode and --without belong to the simulated cluster, and not to --ground delta");
  const batch = new Batch(options);
  const { firstSeed, isOne, story, told } = batch;
  const counters = new StorageCounters();
  let last: StorageSimResult | undefined;
  while (last?.violation === undefined && batch.goOn(counters)) {
    const seed = firstSeed + counters.runs;
    try {
      last = simulateStorage({ seed, story });
    } catch (error) {
      throw simulatorFailed(error, replayOf(seed));
    }
    counters.add(last.counters);
  }
  const summary: Summary = {
    version: packageVersion(),
    firstSeed,
    runs: counters.runs,
    events: counters.events,
    seconds: Number(batch.seconds.toFixed(3)),
    counters,
    ...(isOne && last !== undefined && { traceHash: last.traceHash }),
    ...(told && { story: told }),
    ...(last?.violation !== undefined && {
      violation: {
        invariant: last.violation.invariant,
        text: storageFailureText(last),
        replay: replayOf(last.plan.seed),
      },
    }),
  };
  present(output, presentSummary(summary));
  if (last?.violation === undefined) return exitCode("ok");
  return exitCode(livenessInvariants.has(last.violation.invariant) ? "stuck" : "violation");
}

function replayOf(seed: number): string {
  return `leasehold sim --ground delta --seed ${seed}@${packageVersion()} --story`;
}

function presentSummary(summary: Summary): Presentation {
  const { runs, events, seconds, counters, traceHash, violation, firstSeed } = summary;
  return {
    document: summary,
    objects: [summary],
    table: (paint, widthMax) => [
      `${runs} runs from seed ${firstSeed}, ${events} events in ${seconds.toFixed(1)} s`,
      ...countLines(counters, widthMax),
      ...(traceHash === undefined ? [] : [`trace ${traceHash}`]),
      ...(violation === undefined
        ? []
        : [
            paint("red", `VIOLATION of ${violation.text}`),
            `the same run, as a story:   ${violation.replay}`,
          ]),
    ],
  };
}
