// In this folder because hdr-histogram-js is installed only here.
import { build } from "hdr-histogram-js";

const nsMax = 60_000_000_000;

/** Quantiles of times in µs, to three digits. */
export function quantilesOf(timesUs, quantiles) {
  const histogram = build({ highestTrackableValue: nsMax, numberOfSignificantValueDigits: 3 });
  for (const timeUs of timesUs) histogram.recordValue(Math.round(timeUs * 1_000));
  return Object.fromEntries(quantiles.map((q) => [q, histogram.getValueAtPercentile(q * 100) / 1_000]));
}
