import { onStoreEvent } from "../runtime/store-operations.js";
import type { Catalogued } from "./catalogue.js";

/** Counts this process's operations on stores. Returns a function that stops it. */
export function observeStores(registry: Catalogued): () => void {
  return onStoreEvent((event) => {
    const { kind, store } = event;
    if (kind === "begun") {
      registry.add("leasehold_store_operations_pending", [store]);
      return;
    }
    const outcome = event.outcome.toLowerCase();
    const seconds = event.tookMs / 1_000;
    if (kind === "probed") {
      registry.observe("leasehold_store_probe_duration", [store, outcome], seconds);
      return;
    }
    registry.add("leasehold_store_operations_pending", [store], -1);
    registry.observe("leasehold_store_operation_duration", [store, event.operation, outcome], seconds);
  });
}
