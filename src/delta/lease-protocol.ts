import type { LeaseholdError } from "../lease/errors.js";
import type { Random } from "../common/ports.js";
import type { Detachment } from "../lease/provider.js";
import type { Protocol } from "./effects.js";
import type { Asked, DeltaRecord } from "./record/record.js";
import type { StoreTraits } from "./store.js";
import type { Tenure } from "./tenure.js";

/** The farm as an algorithm sees it: stores by their index, some of which do not count at the moment. */
export interface FarmView {
  /** n */
  readonly size: number;
  /** The least number of stores that is more than half of them. */
  readonly majority: number;
  kindOf(store: number): StoreTraits["kind"];
  /** For people. */
  nameOf(store: number): string;
  /** The marker that `replace` has to name. */
  idOf(store: number): string;
  /** What a cell that was never written counts as: nothing, or after a store has forgotten more than it may have known. */
  floorOf(store: number): Floor;
  /**
   * May a lease have this epoch? Otherwise the stores have to be told first that epochs become so great: the
   * farm's upkeep does so now, and the attempt may be repeated.
   */
  mayTake(epoch: bigint): boolean;
  /** False for a store that has come later, empty: it has not what was written before. */
  remembers(store: number): boolean;
}

export interface Floor {
  /** No lease that the store may have forgotten has a greater one. */
  readonly epoch: bigint;
  /** No record that it may have forgotten has a greater `number`. */
  readonly number: bigint;
}

export const noFloor: Floor = { epoch: 0n, number: 0n };

/** What every algorithm on a farm is made of. */
export interface ProtocolEnvironment {
  readonly farm: FarmView;
  /** Name and incarnation of this process: the `writer` of its records. */
  readonly writer: string;
  /** How the holder is called, for people. */
  readonly label?: string | undefined;
  /** Spreads retries. */
  readonly random: Random;
  readonly settings: DeltaSettings;
}

export interface DeltaSettings {
  /** The longest lease (the longest Δ) that may be asked for, ms. */
  readonly leaseMsMax: number;
  /** δ: the bound on one operation, ms. On atomic stores it is a time-out and nothing more. */
  readonly delayMs: number;
  /** How often a resource that another holds is looked at, ms. */
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
  /** What others are to read of the tenure, as JSON. */
  readonly data?: string | undefined;
  /** Only in the place of this lease, which was detached and does not stand in the way. */
  readonly adopts?: Detachment | undefined;
}

export type AttemptResult<T extends Tenure = Tenure> =
  | { readonly kind: "granted"; readonly tenure: T }
  /** Another has it; to look again sooner than `retryInMs` is useless. */
  | { readonly kind: "held"; readonly holder?: string; readonly retryInMs: number }
  /** Neither is known. What was written has been withdrawn, best effort. */
  | { readonly kind: "failed"; readonly error: LeaseholdError };

/** What one store says of a resource. */
export type StoreView =
  /** `record` is absent where it was never written. `live`: its lease may still run, for at most `remainingMs`. */
  | {
      readonly kind: "answered";
      readonly record?: DeltaRecord | undefined;
      readonly live: boolean;
      readonly remainingMs: number;
    }
  | { readonly kind: "silent"; readonly error: LeaseholdError };

/** What a farm says of a resource: a hint. */
export interface HolderView {
  readonly state: "held" | "free" | "unknown";
  /** A whole majority said the same. */
  readonly confirmed: boolean;
  /** The holder's, when held. */
  readonly record?: DeltaRecord | undefined;
  /** At most so long until it runs out unless it is renewed, ms. */
  readonly remainingMs: number;
  /** By the index of the store. */
  readonly stores: readonly StoreView[];
}

export interface Listing {
  /** What is held below the prefix, in no order. */
  readonly held: readonly { readonly resource: string; readonly holderView: HolderView }[];
  /** By the index of the store: whether it told what it holds. */
  readonly answered: readonly boolean[];
  /** By the index of the store: why it did not, where that is known. */
  readonly errors: readonly (LeaseholdError | undefined)[];
}

/** What came of asking a holder. */
export interface AskResult {
  /** What was held, as it was seen. */
  readonly holderView: HolderView;
  /** On how many stores the request stands now. */
  readonly stores: number;
}

/**
 * An algorithm for leases on a farm of stores. There are two: the conditional lease, where all stores can compare and set, and
 * the paper's, where they cannot. All methods make generators that a driver runs; one object serves one process, with at most
 * one `attempt`, `renew` or `release` of a resource at a time.
 */
export interface LeaseProtocol<T extends Tenure = Tenure> {
  /** One attempt: ends soon, also when another holds the resource. What it learns of the time that a lease has left it keeps. */
  attempt(wish: AttemptWish): Protocol<AttemptResult<T>>;
  /** True when `tenure.hold` has moved. False when that was not reached (it runs on), or `tenure.lost` is set. */
  renew(tenure: T, leaseMs: number): Protocol<boolean>;
  /** The holder has stopped; frees the resource, best effort. */
  release(tenure: T): Protocol<void>;
  /**
   * The holder has stopped, and renews no more: notes the pass by which another may go on. True when a majority
   * has it. Absent where an attempt cannot adopt.
   */
  detach?(tenure: T, pass: string): Protocol<boolean>;
  look(resource: string, timeoutMs: number): Protocol<HolderView>;
  list(prefix: string, timeoutMs: number): Protocol<Listing>;
  /** Leaves a request where the holder finds it when it renews. Absent where that cannot be done. */
  ask?(resource: string, asked: Asked, timeoutMs: number): Protocol<AskResult>;
  /** The longest time from the last write of a holder of `leaseMsMax` that crashed until a process that waits can have the resource, ms. */
  readonly takeoverMsMax: number;
  /** A lease that is shorter than so many δ may be over before its first renewal has ended. */
  readonly leaseDelaysMin: number;
  /** The sentences of `Guarantees`. */
  readonly promise: {
    readonly exclusion: string;
    readonly token: string;
    readonly progress: string;
    readonly assumptions: readonly string[];
  };
}
