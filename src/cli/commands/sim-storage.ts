import { type StorageSimResult, simulateStorage, storageFailureText } from "../../sim/storage/run.js";
import { StorageCounters } from "../../sim/storage/counters.js";
import { livenessInvariants } from "../../sim/storage/violation.js";
import { exitCode } from "../exit-codes.js";
import { usageError } from "../failure.js";
import { type Presentation, present } from "../output/present.js";
import { sayLine } from "../say.js";
import { settingsOf } from "../settings.js";
import { packageVersion } from "../version.js";
import { type SimCommandOptions, countLines, minutesDefault, parseSeed } from "./sim.js";

interface Summary {
  readonly version: string;
  readonly firstSeed: number;
  readonly runs: number;
  readonly events: number;
  readonly seconds: number;
  readonly counters: StorageCounters;
  /** Of the only run. */
  readonly traceHash?: string;
  readonly violation?: { readonly invariant: string; readonly text: string; readonly replay: string };
}

/** `leasehold sim --ground delta`: random runs of the algorithms on shared storage. The seed decides which, and all else. */
export function simStorage(options: SimCommandOptions): number {
  const { output } = settingsOf(options);
  if (options.mode !== undefined || options.without !== undefined)
    throw usageError("--mode and --without belong to the simulated cluster, and not to --ground delta");
  const firstSeed = options.seed === undefined ? Math.floor(Date.now() / 1_000) : parseSeed(options.seed);
  const one = options.seed !== undefined && options.minutes === undefined && options.runs === undefined;
  if (options.story === true && !one) throw usageError("--story needs the --seed of a run");
  const story = options.story === true ? (line: string) => void sayLine(line) : undefined;
  const counters = new StorageCounters();
  const startMs = performance.now();
  const endMs =
    startMs + (options.minutes ?? (options.runs === undefined ? minutesDefault : Infinity)) * 60_000;
  const runsMax = one ? 1 : (options.runs ?? Infinity);
  let last: StorageSimResult | undefined;
  for (let runs = 0; runs < runsMax && performance.now() < endMs; runs += 1) {
    last = simulateStorage({ seed: firstSeed + runs, story });
    counters.add(last.counters);
    if (last.violation !== undefined) break;
  }
  const summary: Summary = {
    version: packageVersion(),
    firstSeed,
    runs: counters.runs,
    events: counters.events,
    seconds: Number(((performance.now() - startMs) / 1_000).toFixed(3)),
    counters,
    ...(one && last !== undefined && { traceHash: last.traceHash }),
    ...(last?.violation !== undefined && {
      violation: {
        invariant: last.violation.invariant,
        text: storageFailureText(last),
        replay: `leasehold sim --ground delta --seed ${last.plan.seed}@${packageVersion()} --story`,
      },
    }),
  };
  // A story is told as it happens; a document for programs must stand alone.
  if (story === undefined || output === "table") present(output, presentSummary(summary));
  if (last?.violation === undefined) return exitCode("ok");
  return exitCode(livenessInvariants.has(last.violation.invariant) ? "stuck" : "violation");
}

function presentSummary(summary: Summary): Presentation {
  const { runs, events, seconds, counters, traceHash, violation, firstSeed } = summary;
  return {
    document: summary,
    objects: [summary],
    table: (paint) => [
      `${runs} runs from seed ${firstSeed}, ${events} events in ${seconds.toFixed(1)} s`,
      ...countLines(counters),
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
