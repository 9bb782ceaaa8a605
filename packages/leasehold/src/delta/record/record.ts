/**
 * The content of a register. `(number, writer, nonce)` is the paper's timestamp: no two writes ever have the
 * same.
 */
export interface DeltaRecord {
  readonly resource: string;
  /** The fencing token: one more at every successful contend, unchanged by renewals and releases. */
  readonly epoch: bigint;
  /** One more than the greatest number that its writer had read. */
  readonly number: bigint;
  /** Name and incarnation of the process that wrote it. */
  readonly writer: string;
  /** A counter of that process's writes. */
  readonly nonce: number;
  readonly state: "held" | "free";
  /**
   * Δ: how long it holds from the start of the write, ms. A process that waits for its end uses this value.
   */
  readonly leaseMs: number;
  /** δ: the bound on one operation that its writer relies on, ms. */
  readonly delayMs: number;
  /** The holder's description, for display. */
  readonly label?: string;
  /** The holders of a shared (reader) lease, see `shared.ts`. */
  readonly readers?: readonly string[];
  /**
   * A request that another participant left in the holder's record by compare-and-set, leaving the rest
   * unchanged. The holder finds it when it renews.
   */
  readonly asked?: Asked;
  /** The pass of a lease that its holder has detached: another participant may take over with it. */
  readonly detached?: string;
  /** The tenure's public data, as JSON. */
  readonly data?: string;
}

/** A request of another participant to the holder. */
export interface Asked {
  /** The requesting participant, by its own claim. */
  readonly by: string;
  /** A record with this set is no longer renewed. */
  readonly broken: boolean;
}
