import type { LeaseholdError } from "../lease/errors.js";
import type { Random } from "../common/ports.js";
import type { Detachment } from "../lease/provider.js";
import type { Protocol } from "./effects.js";
import type { Asked, DeltaRecord } from "./record/record.js";
import type { StoreTraits } from "./store.js";
import type { Tenure } from "./tenure.js";

/** A farm as an algorithm sees it: stores by their index, some of which do not count at the moment. */
export interface FarmView {
  /** n */
  readonly size: number;
  /** The smallest number of stores that is more than half of them. */
  readonly majority: number;
  kindOf(store: number): StoreTraits["kind"];
  /** For messages. */
  nameOf(store: number): string;
  /** The marker that a `replace` has to name. */
  idOf(store: number): string;
  /** The value of a cell that was never written: nothing, or more than the store can have forgotten. */
  floorOf(store: number): Floor;
  /**
   * Whether a lease may have this epoch. If not, the bound of epochs has to be raised in the stores first:
   * the farm does so now, and the attempt may be repeated.
   */
  mayTake(epoch: bigint): boolean;
  /** False for a store that joined later, empty: it lacks what was written before. */
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
  /** The holder's description, for people. */
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
  /** ρ: how far a steady clock's rate may be off, as a fraction of 1. */
  readonly clockRateError: number;
}

export interface AttemptWish {
  readonly resource: string;
  /** Δ, ms. */
  readonly leaseMs: number;
  /** On the steady clock: no new round begins after it. */
  readonly deadlineMs: number;
  /** The tenure's data for others to read, as JSON. */
  readonly data?: string | undefined;
  /** Takes over this detached lease only; it does not block the attempt. */
  readonly adopts?: Detachment | undefined;
}

export type AttemptResult<T extends Tenure = Tenure> =
  | { readonly kind: "granted"; readonly tenure: T }
  /** Another has it; checking again before `retryInMs` is useless. */
  | { readonly kind: "held"; readonly holder?: string; readonly retryInMs: number }
  /** The outcome is unknown. Anything that was written has been withdrawn, best effort. */
  | { readonly kind: "failed"; readonly error: LeaseholdError };

/** One store's view of a resource. */
export type StoreView =
  /**
   * `record` is absent where it was never written. `live`: its lease may still be valid, for at most
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
  /** A majority gave the same answer. */
  readonly confirmed: boolean;
  /** The holder's record, when held. */
  readonly record?: DeltaRecord | undefined;
  /** Milliseconds until it expires, at most, unless it is renewed. */
  readonly remainingMs: number;
  /** By the index of the store. */
  readonly stores: readonly StoreView[];
}

export interface Listing {
  /** The leases held below the prefix, in no order. */
  readonly held: readonly { readonly resource: string; readonly holderView: HolderView }[];
  /** By the index of the store: whether it listed its leases. */
  readonly answered: readonly boolean[];
  /** By the index of the store: why it did not, where that is known. */
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
 * An algorithm for leases on a farm of stores. There are two: the conditional lease, where all stores can
 * compare and set, and the paper's, where they cannot. All methods return generators that a driver runs; one
 * object serves one process, with at most one `attempt`, `renew` or `release` of a resource at a time.
 */
export interface LeaseProtocol<T extends Tenure = Tenure> {
  /**
   * One attempt. It ends soon, also when another holds the resource, and remembers how long the other's lease
   * has been observed.
   */
  attempt(wish: AttemptWish): Protocol<AttemptResult<T>>;
  /**
   * True when `tenure.hold` has moved. False when that failed (the tenure runs on), or `tenure.lost` is set.
   */
  renew(tenure: T, leaseMs: number): Protocol<boolean>;
  /** The holder has stopped: frees the resource, best effort. */
  release(tenure: T): Protocol<void>;
  /**
   * The holder has stopped and renews no more: stores the pass with which another may take over. True when a
   * majority has it. Absent where an attempt cannot adopt.
   */
  detach?(tenure: T, pass: string): Protocol<boolean>;
  look(resource: string, timeoutMs: number): Protocol<HolderView>;
  list(prefix: string, timeoutMs: number): Protocol<Listing>;
  /** Leaves a request that the holder finds when it renews. Absent where that is impossible. */
  ask?(resource: string, asked: Asked, timeoutMs: number): Protocol<AskResult>;
  /**
   * The longest time from the last write of a holder of `leaseMsMax` that crashed until a waiting process has
   * the resource, ms.
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
