import { dataField } from "../../lease/tenure-data.js";
import type { ResourceHint } from "../../lease/types.js";
import type { ListedLease } from "./listing.js";

/** What acceptors told of a lease, in the form that programs see. */
export function hintOf(lease: ListedLease, wall: number): ResourceHint {
  return {
    resource: lease.resource,
    state: "held",
    holder: lease.owner,
    token: BigInt(lease.token),
    remainingMs: Math.max(0, lease.until - wall),
    ...(lease.label !== undefined && { label: lease.label }),
    ...dataField(lease.data),
  };
}
