import type { StoreTraits } from "../delta/store.js";
import { formatDuration } from "../lease/duration.js";
import type { Measurement } from "./measure.js";
import { greatest } from "../common/lists.js";

/**
 * δ is this multiple of the 99.9th percentile: latencies on a bad day are several times those on the day of
 * the measurement.
 */
const timesTail = 5;

/** The number of phases of one operation on the paper's register: a read and then a write. */
const phases = 2;

/** Δ is this multiple of δ, so that a renewal after a third of the lease may fail more than once. */
const delaysPerLease = 12;

/** With fewer samples the 99.9th percentile is unknown. */
const samplesWanted = 1_000;

/** The lower bounds of a proposal, ms: even a busy process pauses for that long. */
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
  /** The derivation of the proposal, as sentences. */
  readonly reasons: readonly string[];
}

/** Proposes δ and Δ for measured stores. `loopMs`: the worst delay of this process's event loop. */
export function propose(examined: readonly Examined[], loopMs: number): Proposal {
  const isSlotted = examined.some(({ traits }) => traits.kind === "slotted");
  const tails = examined.map(({ measurement: { reads, writes } }) => {
    const tailMs = Math.max(reads.p999, writes.p999);
    return isSlotted ? phases * tailMs : tailMs;
  });
  const tailMs = greatest(tails);
  const measuredMs = roundUp(timesTail * tailMs + loopMs);
  const floors = examined.map(({ scheme, traits }) => {
    // Object stores have bad hours, which a measurement of seconds misses. If exclusion depends on δ, the
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
