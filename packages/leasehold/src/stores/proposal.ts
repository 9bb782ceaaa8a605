import type { StoreTraits } from "../delta/store.js";
import { formatDuration } from "../lease/duration.js";
import type { Measurement } from "./measure.js";
import { greatest } from "../common/lists.js";

/**
 * δ is this multiple of the 99.9th percentile: a bad day is several times worse than the day of the
 * measurement.
 */
const timesTail = 5;

/** Phases of one operation of the paper's register: it reads, and then it writes. */
const phases = 2;

/** Δ is this multiple of δ: a renewal at a third of it may fail more than once. */
const delaysPerLease = 12;

/** With fewer samples the 99.9th percentile is unknown. */
const samplesWanted = 1_000;

/** Lower bounds of the proposal, ms: a busy process alone pauses for that long. */
const delayMsMin = 100;
const leaseMsMin = 2_000;

/** The input of a proposal. */
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
  /** How it was derived, as sentences. */
  readonly reasons: readonly string[];
}

/** δ and Δ for measured stores. `loopMs`: the worst delay of this process's event loop. */
export function propose(examined: readonly Examined[], loopMs: number): Proposal {
  const isSlotted = examined.some(({ traits }) => traits.kind === "slotted");
  const tails = examined.map(({ measurement: { reads, writes } }) => {
    const tailMs = Math.max(reads.p999, writes.p999);
    return isSlotted ? phases * tailMs : tailMs;
  });
  const tailMs = greatest(tails);
  const measuredMs = roundUp(timesTail * tailMs + loopMs);
  const floors = examined.map(({ scheme, traits }) => {
    // Object stores have bad hours that a measurement of seconds doesn't see; where exclusion depends on δ, a
    // kind's default is the minimum.
    return scheme === "s3" || isSlotted ? traits.delayMs : delayMsMin;
  });
  const floorMs = greatest(floors);
  const maxStoreLatencyMs = Math.max(measuredMs, floorMs);
  const from =
    measuredMs >= floorMs
      ? `δ is ${timesTail} times the slowest store's 99.9th percentile (${ms(tailMs)}${isSlotted ? " for both phases" : ""}) and the event loop's delay (${ms(loopMs)})`
      : `δ is the recommended minimum for these stores; the measured 99.9th percentile was ${ms(tailMs)}`;
  return {
    maxStoreLatencyMs,
    ttlMaxMs: Math.max(leaseMsMin, delaysPerLease * maxStoreLatencyMs),
    reasons: [
      from,
      ...(examined.some(({ measurement }) => measurement.reads.samples < samplesWanted)
        ? [
            `with fewer than ${samplesWanted} samples the 99.9th percentile is the maximum: measure for longer`,
          ]
        : []),
      `Δ is ${delaysPerLease} times δ, and at least ${formatDuration(leaseMsMin)}`,
      isSlotted
        ? "exclusion depends on δ here: measure under load and on the slowest machine, and give all participants the same value"
        : "δ is only a timeout here: a value that is too small costs progress, never exclusion",
    ],
  };
}

/** Rounded up to two digits. */
function roundUp(value: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 1);
  return Math.ceil(value / step) * step;
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
