import { features } from "./features.js";
import type { Feature } from "./features.js";
import { simulate } from "./run.js";
import type { SimOptions, SimResult } from "./run.js";

/**
 * Makes a failing run shorter: takes out one feature after another, and keeps out those without which the same
 * invariant still breaks, in no more events. A run ends at its violation, so its time is cut already.
 */
export async function shorten(
  options: SimOptions,
  failed: SimResult,
): Promise<{ options: SimOptions; result: SimResult }> {
  let best = { options, result: failed };
  for (const feature of features) {
    const without: readonly Feature[] = [...(best.options.without ?? []), feature];
    if (best.options.without?.includes(feature) === true) continue;
    const tried = { ...best.options, without };
    const result = await simulate(tried);
    const same = result.violation?.invariant === failed.violation?.invariant;
    if (same && result.counters.events <= best.result.counters.events) best = { options: tried, result };
  }
  return best;
}
