import type { LeaseholdError } from "../lease/errors.js";
import type { Random } from "../common/ports.js";
import type { Detachment } from "../lease/provider.js";
import type { Protocol } from "./effects.js";
import type { Asked, DeltaRecord } from "./record/record.js";
import type { StoreTraits } from "./store.js";
import type { Tenure } from "./tenure.js";

/** A farm as seen by an algorithm: stores by index, some of which may not count at the moment. */
export interface FarmView {
  /** Number of stores, n. */
  readonly size: number;
  /** The smallest number of stores that is more than half of them. */
  readonly majority: number;
  kindOf(store: number): StoreTraits["kind"];
  /** Names of the stores, for messages. */
  nameOf(store: number): string;
  /** The marker that a `replace` has to name. */
  idOf(store: number): string;
  /**
   * The value of a cell that was never written: nothing, or an upper bound of what the store may have
   * forgotten.
   */
  floorOf(store: number): Floor;
  /**
   * Whether a lease may have this epoch. If not, the farm begins to raise the bound in the stores, and the
   * attempt may be retried.
   */
  mayTake(epoch: bigint): boolean;
  /** False for a store that joined later, empty: it lacks earlier writes. */
  remembers(store: number): boolean;
}

export interface Floor {
  /** No lease that the store may have forgotten has a greater epoch. */
  readonly epoch: bigint;
  /** No record that the store may have forgotten has a greater `number`. */
  readonly number: bigint;
}

export const noFloor: Floor = { epoch: 0n, number: 0n };

/** The environment of every algorithm on a farm. */
export interface ProtocolEnvironment {
  readonly farm: FarmView;
  /** Name and incarnation of this process: the `writer` of its records. */
  readonly writer: string;
  /** The holder's description, for display. */
  readonly label?: string | undefined;
  /** Spreads retries. */
  readonly random: Random;
  readonly settings: DeltaSettings;
}

export interface DeltaSettings {
  /** The greatest length of a lease (the greatest Δ), ms. */
  readonly leaseMsMax: number;
  /** δ: the bound on one operation, ms. On atomic stores it is only a timeout. */
  readonly delayMs: number;
  /** The poll interval for a resource that another holds, ms. */
  readonly pollMs: number;
  /** ρ: the maximum error of a steady clock's rate, as a fraction of 1. */
  readonly clockRateError: number;
}

export interface AttemptWish {
  readonly resource: string;
  /** Δ, ms. */
  readonly leaseMs: number;
  /** On the steady clock: no new round begins after this time. */
  readonly deadlineMs: number;
  /** The tenure's public data, as JSON. */
  readonly data?: string | undefined;
  /** Acquires only by taking over this detached lease, which does not block the attempt. */
  readonly adopts?: Detachment | undefined;
}

export type AttemptResult<T extends Tenure = Tenure> =
  | { readonly kind: "granted"; readonly tenure: T }
  /** Another participant has it; checking again before `retryInMs` is useless. */
  | { readonly kind: "held"; readonly holder?: string; readonly retryInMs: number }
  /** The outcome is unknown. Any write was withdrawn, best effort. */
  | { readonly kind: "failed"; readonly error: LeaseholdError };

/** One store's view of a resource. */
export type StoreView =
  /**
   * `record` is absent where the cell was never written. `live`: its lease may still be valid, for at most
   * `remainingMs`.
   */
  | {
      readonly kind: "answered";
      readonly record?: DeltaRecord | undefined;
      readonly live: boolean;
      readonly remainingMs: number;
    }
  | { readonly kind: "silent"; readonly error: LeaseholdError };

/** A farm's view of a resource: a hint. */
export interface HolderView {
  readonly state: "held" | "free" | "unknown";
  /** Whether a majority gave the same answer. */
  readonly confirmed: boolean;
  /** The holder's record, when held. */
  readonly record?: DeltaRecord | undefined;
  /** Maximum time until it expires without a renewal, ms. */
  readonly remainingMs: number;
  /** By store index. */
  readonly stores: readonly StoreView[];
}

export interface Listing {
  /** The leases held below the prefix, in no order. */
  readonly held: readonly { readonly resource: string; readonly holderView: HolderView }[];
  /** By store index: whether the store listed its leases. */
  readonly answered: readonly boolean[];
  /** By store index: why the store did not, if known. */
  readonly errors: readonly (LeaseholdError | undefined)[];
}

/** The result of a request to a holder. */
export interface AskResult {
  /** The view of the resource when the request was left. */
  readonly holderView: HolderView;
  /** The number of stores that have the request now. */
  readonly stores: number;
}

/**
 * An algorithm for leases on a farm of stores. There are two: the conditional lease, if all stores can
 * compare and set, and otherwise the paper's. All methods return generators that a driver runs. One object
 * serves one process, with at most one `attempt`, `renew` or `release` of a resource at a time.
 */
export interface LeaseProtocol<T extends Tenure = Tenure> {
  /**
   * One attempt. It ends soon, even when another participant holds the resource, and remembers how long that
   * lease has been observed.
   */
  attempt(wish: AttemptWish): Protocol<AttemptResult<T>>;
  /**
   * True when `tenure.hold` was extended. False when that failed (the tenure continues), or when
   * `tenure.lost` is set.
   */
  renew(tenure: T, leaseMs: number): Protocol<boolean>;
  /** Frees the resource after the holder has stopped, best effort. */
  release(tenure: T): Protocol<void>;
  /**
   * Stores the pass with which another process may take over, after the holder has stopped and no longer
   * renews. True when a majority has the pass. Absent where an attempt cannot adopt.
   */
  detach?(tenure: T, pass: string): Protocol<boolean>;
  look(resource: string, timeoutMs: number): Protocol<HolderView>;
  list(prefix: string, timeoutMs: number): Protocol<Listing>;
  /** Leaves a request that the holder finds when it renews. Absent where that is impossible. */
  ask?(resource: string, asked: Asked, timeoutMs: number): Protocol<AskResult>;
  /**
   * The longest time from the last write of a crashed holder with a lease of `leaseMsMax` until a waiting
   * process has the resource, ms.
   */
  readonly takeoverMsMax: number;
  /** The shortest lease, in δ: a shorter one may expire before its first renewal has ended. */
  readonly leaseDelaysMin: number;
  /** The sentences of `Guarantees`. */
  readonly promise: {
    readonly exclusion: string;
    readonly token: string;
    readonly progress: string;
    readonly assumptions: readonly string[];
  };
}
