import { dataField } from "../../lease/tenure-data.js";
import type { ResourceHint } from "../../lease/types.js";
import type { ListedLease } from "./listing.js";

/**
 * Upper bound of the remaining time of a lease that ends at `until`, ms. That end is by its holder's system
 * clock and `wall` is by ours, which may be up to ε apart. No lease has more time left than the longest lease
 * time.
 */
export function leftMs(until: number, wall: number, ttlMaxMs: number): number {
  return Math.min(ttlMaxMs, Math.max(0, until - wall));
}

/** Acceptors' reports of a lease, in their public form. */
export function hintOf(lease: ListedLease, wall: number, ttlMaxMs: number): ResourceHint {
  return {
    resource: lease.resource,
    state: "held",
    holder: lease.owner,
    token: BigInt(lease.token),
    remainingMs: leftMs(lease.until, wall, ttlMaxMs),
    ...(lease.label !== undefined && { label: lease.label }),
    ...dataField(lease.data),
  };
}
