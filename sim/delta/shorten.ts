import { storageFeatures } from "./features.js";
import { simulateStorage, type StorageSimOptions, type StorageSimResult } from "./run.js";

/** Takes out of a failing run each feature without which the same invariant still breaks, in no more events. */
export function shortenStorage(
  options: StorageSimOptions,
  failed: StorageSimResult,
): { readonly options: StorageSimOptions; readonly result: StorageSimResult } {
  let best = { options, result: failed };
  for (const feature of storageFeatures) {
    const { without = [] } = best.options;
    if (without.includes(feature)) continue;
    const tried = { ...best.options, without: [...without, feature] };
    const result = simulateStorage(tried);
    const same = result.violation?.invariant === failed.violation?.invariant;
    if (same && result.counters.events <= best.result.counters.events) best = { options: tried, result };
  }
  return best;
}
