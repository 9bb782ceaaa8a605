import type { Asked } from "../../delta/record/record.js";
import type { Entry } from "../protocol/entries/entry.js";

/**
 * An acceptor's state of one resource on a store: its entry, without its end on a steady clock, which no
 * other process could read. No content ever recurs: each change raises the promise, the lease's ballot or its
 * sequence number, or sets a flag that is never cleared while these are unchanged. So equal bytes mean that
 * nothing has happened in between, as compare-and-set requires.
 */
export interface EntryRecord {
  readonly resource: string;
  readonly entry: Omit<Entry, "leaseExpiresMonoMs" | "payer">;
  /** The lease owner's label, for people. */
  readonly label?: string;
  /** Another participant's request to the lease owner, which finds it at its next renewal. */
  readonly asked?: Request;
  /** Public data of the lease owner's tenure, as JSON. */
  readonly data?: string;
}

export interface Request extends Asked {
  /** The owner has seen the request. */
  readonly heard: boolean;
}
