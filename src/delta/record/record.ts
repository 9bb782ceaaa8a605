/**
 * What stands in a register. `(number, writer, nonce)` is the paper's timestamp: no two writes ever have the same.
 */
export interface DeltaRecord {
  readonly resource: string;
  /** One more at every successful contend, unchanged by renewals and releases: the fencing token. */
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
  /** How the holder is called, for people. */
  readonly label?: string;
  /** Shared (reader) leases: who holds them, see `shared.ts`. */
  readonly readers?: readonly string[];
  /** Left by another by compare-and-set in the holder's record, which is otherwise untouched: it finds it when it renews. */
  readonly asked?: Asked;
  /** Its holder has stopped and detached it: who has this pass may go on with it. */
  readonly detached?: string;
  /** What the holder lets others read of its tenure, as JSON. */
  readonly data?: string;
}

/** Somebody wants the resource from its holder. */
export interface Asked {
  /** Who asks, as that one says. */
  readonly by: string;
  /** A record with this is not renewed any more. */
  readonly broken: boolean;
}
