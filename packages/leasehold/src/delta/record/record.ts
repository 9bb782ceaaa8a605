/**
 * The content of a register. `(number, writer, nonce)` is the paper's timestamp: no two writes ever have the
 * same.
 */
export interface DeltaRecord {
  readonly resource: string;
  /** The fencing token: one more at every successful contend, unchanged by renewals and releases. */
  readonly epoch: bigint;
  /** One more than the greatest that its writer had read. */
  readonly number: bigint;
  /** Name and incarnation of the process that wrote it. */
  readonly writer: string;
  /** One more at every write of that process. */
  readonly nonce: number;
  readonly state: "held" | "free";
  /** Δ: how long it holds from the start of the write, ms. A process that waits for its end waits by this. */
  readonly leaseMs: number;
  /** δ: the bound on one operation that its writer relies on, ms. */
  readonly delayMs: number;
  /** The holder's description, for people. */
  readonly label?: string;
  /** The holders of a shared (reader) lease, see `shared.ts`. */
  readonly readers?: readonly string[];
  /**
   * Left by another participant with compare-and-set in the holder's record, which is otherwise untouched:
   * the holder finds it when it renews.
   */
  readonly asked?: Asked;
  /** The pass of a lease that its holder has detached: with it another may take over. */
  readonly detached?: string;
  /** The data of the tenure for others to read, as JSON. */
  readonly data?: string;
}

/** A request of another participant to the holder. */
export interface Asked {
  /** The participant that asks, by its own account. */
  readonly by: string;
  /** A record with this set is not renewed any more. */
  readonly broken: boolean;
}
