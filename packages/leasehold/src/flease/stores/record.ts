import type { Asked } from "../../delta/record/record.js";
import type { Entry } from "../protocol/entries/entry.js";

/**
 * An acceptor's state of one resource on a store: its entry without the end on a steady clock, which no
 * other process could read.
 *
 * No content ever recurs: each change raises the promise, the lease's ballot, its sequence number or a flag
 * that is never cleared within them. So equal bytes mean that nothing has happened in between, as
 * compare-and-set requires.
 */
export interface EntryRecord {
  readonly resource: string;
  readonly entry: Omit<Entry, "leaseExpiresMonoMs" | "payer">;
  /** The lease owner's label, for people. */
  readonly label?: string;
  /** Another participant's request to the lease owner, which finds it when it renews. */
  readonly asked?: Request;
  /** The lease owner's public data of its tenure, as JSON. */
  readonly data?: string;
}

export interface Request extends Asked {
  /** The owner has seen it. */
  readonly heard: boolean;
}
