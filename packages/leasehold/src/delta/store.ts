import type { LeaseholdError } from "../lease/errors.js";

/** The properties of a store. */
export interface StoreTraits {
  /** Its address without credentials, for messages. */
  readonly name: string;
  /**
   * `atomic`: `replace` compares and sets. `slotted`: `put` writes this writer's slot, and `read` returns
   * every slot.
   */
  readonly kind: "atomic" | "slotted";
  /** Acknowledged writes survive a power loss and a restart of its server. */
  readonly durable: boolean;
  /** The longest register content that it takes, in bytes. */
  readonly bytesMax: number;
  /**
   * The interval for polling whether a lease has become free, ms: cheap for a disk, expensive for an object
   * store.
   */
  readonly pollMs: number;
  /** The default bound on one operation (δ), ms. */
  readonly delayMs: number;
}

/**
 * A store's answer. `id` is its marker at that moment: another marker means that it has forgotten. The
 * adapter manages the marker: it is random, written by create-if-absent when the store is first used, and
 * lost with everything else.
 */
export type StoreAnswer =
  /**
   * `cells` of an atomic store has no element (never written) or one; that of a slotted store has one for
   * each slot in use. With `mark` the store can later be asked whether anything was announced since.
   */
  | {
      readonly kind: "cells";
      readonly id: string;
      readonly cells: readonly Uint8Array[];
      readonly mark?: string;
    }
  /**
   * Nothing was announced since the read whose answer had the mark `quietSince`: that read saw every
   * non-quiet `put` that has ended by now.
   */
  | { readonly kind: "quiet"; readonly id: string }
  | { readonly kind: "written"; readonly id: string }
  /** Nothing was written, because the cell differs from `expected`. */
  | { readonly kind: "conflict"; readonly id: string; readonly cells: readonly Uint8Array[] }
  | {
      readonly kind: "registers";
      readonly id: string;
      readonly registers: ReadonlyMap<string, readonly Uint8Array[]>;
    }
  /**
   * The store reported a failure: never taken for an empty cell. The error has one of the `STORE_…` codes.
   */
  | { readonly kind: "failed"; readonly error: LeaseholdError };

export type StoreRequest =
  /** With the mark of an earlier answer, a slotted store may answer `quiet`. */
  | { readonly op: "read"; readonly register: string; readonly quietSince?: string }
  /**
   * Atomic stores: writes `next` if the cell is `expected` (`undefined`: never written) and its marker is
   * `id`, all in one step.
   */
  | {
      readonly op: "replace";
      readonly register: string;
      readonly id: string;
      readonly expected: Uint8Array | undefined;
      readonly next: Uint8Array;
    }
  /**
   * Slotted stores: writes this writer's slot, and announces the write unless it is `quiet`. A renewal is
   * quiet: processes without a hold need not know of it.
   */
  | { readonly op: "put"; readonly register: string; readonly next: Uint8Array; readonly quiet?: boolean }
  /** Up to `registersMax` registers whose names begin with `prefix`. */
  | { readonly op: "list"; readonly prefix: string; readonly registersMax: number };

/**
 * The shared storage that a Δ-lease needs: plain cells of a few hundred bytes each. A store may never answer;
 * up to t of n > 2t stores may fall silent. There are two kinds. *Atomic* stores compare and set, so any
 * number of writers share one cell. *Slotted* stores can only write (a sector of a disk): every writer has a
 * slot of its own in each register, and a read returns all of them.
 *
 * Cells are compared by content. No two writes of this library are ever equal (`DeltaRecord`), so equal
 * content means that nothing was written meanwhile.
 */
export interface Store {
  readonly traits: StoreTraits;
  /**
   * Never rejects: every failure is a `failed`. It may take forever, or answer long after its caller has
   * given up (a ghost write). The caller bounds the operations in flight.
   */
  perform(request: StoreRequest, caller?: StoreCaller): Promise<StoreAnswer>;
  /** Leaves no handle open. */
  close(): Promise<void>;
}

/** The caller of an operation, which may give up. */
export interface StoreCaller {
  /** Aborts when the caller gives up. It is created when a store first reads it; not all stores do. */
  readonly signal: AbortSignal;
}

/** The register with this name in every store has the store's marker and the list of stores of its farm. */
export const farmRegister = "leasehold.farm";
