import type { StoreTraits } from "../delta/store.js";
import { formatDuration } from "../lease/duration.js";
import type { Measurement } from "./measure.js";
import { greatest } from "../common/lists.js";

/**
 * δ is so many times the 99.9th percentile: a bad day is several times worse than the day of the measurement.
 */
const timesTail = 5;

/** Phases of one operation of the paper's register: it reads, and then it writes. */
const phases = 2;

/** Δ is so many times δ: a renewal at a third of it may fail more than once. */
const delaysPerLease = 12;

/** With fewer samples nothing is known about the 99.9th percentile. */
const samplesWanted = 1_000;

/** Nothing below this is worth having: pauses of a busy process alone are as long, ms. */
const delayMsMin = 100;
const leaseMsMin = 2_000;

/** What a proposal is made from. */
export interface Examined {
  readonly traits: Pick<StoreTraits, "kind" | "delayMs">;
  readonly scheme: string;
  readonly measurement: Measurement;
}

export interface Proposal {
  /** δ, ms. */
  readonly maxStoreLatencyMs: number;
  /** Δ, ms. */
  readonly ttlMaxMs: number;
  /** Where it comes from, as sentences. */
  readonly reasons: readonly string[];
}

/** δ and Δ for stores that were measured. `loopMs`: how late this process's event loop was at the worst. */
export function propose(examined: readonly Examined[], loopMs: number): Proposal {
  const isSlotted = examined.some(({ traits }) => traits.kind === "slotted");
  const tails = examined.map(({ measurement: { reads, writes } }) => {
    const tailMs = Math.max(reads.p999, writes?.p999 ?? 0);
    return isSlotted ? phases * tailMs : tailMs;
  });
  const tailMs = greatest(tails);
  const measuredMs = roundUp(timesTail * tailMs + loopMs);
  const floors = examined.map(({ scheme, traits }) => {
    // Object stores have hours that no measurement of seconds sees; where exclusion rests on δ, a kind's own
    // default is the least.
    return scheme === "s3" || isSlotted ? traits.delayMs : delayMsMin;
  });
  const floorMs = greatest(floors);
  const maxStoreLatencyMs = Math.max(measuredMs, floorMs);
  const from =
    measuredMs >= floorMs
      ? `δ is ${timesTail} times the slowest store's 99.9th percentile (${ms(tailMs)}${isSlotted ? " for both phases" : ""}) and the event loop's delay (${ms(loopMs)})`
      : `δ is the least that is advised for these stores; measured was ${ms(tailMs)} at the 99.9th percentile`;
  return {
    maxStoreLatencyMs,
    ttlMaxMs: Math.max(leaseMsMin, delaysPerLease * maxStoreLatencyMs),
    reasons: [
      from,
      ...(examined.some(({ measurement }) => measurement.reads.samples < samplesWanted)
        ? [
            `with fewer than ${samplesWanted} samples the 99.9th percentile is the longest: measure for longer`,
          ]
        : []),
      `Δ is ${delaysPerLease} times δ, and at least ${formatDuration(leaseMsMin)}`,
      isSlotted
        ? "exclusion rests on δ here: measure under load and on the worst machine, and give all participants the same"
        : "δ is only a time-out here: too small costs progress, never exclusion",
    ],
  };
}

/** To two digits, as people write such numbers. */
function roundUp(value: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 1);
  return Math.ceil(value / step) * step;
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
