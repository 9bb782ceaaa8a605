import type { Asked } from "../../delta/record/record.js";
import type { Entry } from "../protocol/entries/entry.js";

/**
 * What an acceptor on a store keeps of one resource: its entry, but for the end on a steady clock, as there is none that
 * the next to take the acceptor's part could read.
 *
 * No content ever returns: each change raises the promise, the lease's ballot, its sequence number or a flag that is not taken
 * back within them. So equal bytes mean that nothing has happened in between, which is what compare-and-set rests on.
 */
export interface EntryRecord {
  readonly resource: string;
  readonly entry: Omit<Entry, "leaseExpiresMonoMs" | "payer">;
  /** What the owner of the lease says of itself, for people. */
  readonly label?: string;
  /** Somebody wants the resource from the owner of the lease, who finds this when it renews. */
  readonly asked?: Request;
  /** What the owner of the lease lets others read of its tenure, as JSON. */
  readonly data?: string;
}

export interface Request extends Asked {
  /** The owner has seen it. */
  readonly heard: boolean;
}
