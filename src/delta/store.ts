import type { LeaseholdError } from "../lease/errors.js";

/** What the users of a store have to know of it. */
export interface StoreTraits {
  /** For people: its address without credentials. */
  readonly name: string;
  /** `atomic`: `replace` compares and sets. `slotted`: `put` writes this writer's slot, `read` returns every slot. */
  readonly kind: "atomic" | "slotted";
  /** What it has acknowledged survives loss of power and a restart of its server. */
  readonly durable: boolean;
  /** The longest register content in bytes that it takes. */
  readonly bytesMax: number;
  /** How often it may be asked whether a lease has become free, ms: what is cheap for a disk is dear at an object store. */
  readonly pollMs: number;
  /** The default bound on one operation (δ), ms. */
  readonly delayMs: number;
  /** False where cells have a format of their own, with no room for the data of a tenure. Default true. */
  readonly takesData?: boolean | undefined;
}

/**
 * What a store said. `id` is its marker at that moment: another marker means that it has forgotten. The marker is the
 * adapter's own: drawn at random and written by create-if-absent when the store is first used, and lost with everything else.
 */
export type StoreAnswer =
  /**
   * `cells` of an atomic store has no element (never written) or one; of a slotted one, one for each slot in use. With `mark` it
   * can be asked later whether anything was announced since.
   */
  | {
      readonly kind: "cells";
      readonly id: string;
      readonly cells: readonly Uint8Array[];
      readonly mark?: string;
    }
  /** Since the read whose answer had the mark `quietSince`, nothing was announced: every `put` that was not quiet and has ended by now was seen by that read. */
  | { readonly kind: "quiet"; readonly id: string }
  | { readonly kind: "written"; readonly id: string }
  /** Nothing was written, as the cell is not what was expected. */
  | { readonly kind: "conflict"; readonly id: string; readonly cells: readonly Uint8Array[] }
  | {
      readonly kind: "registers";
      readonly id: string;
      readonly registers: ReadonlyMap<string, readonly Uint8Array[]>;
    }
  /** It answered that it cannot: never taken for an empty cell. The error has one of the `STORE_…` codes. */
  | { readonly kind: "failed"; readonly error: LeaseholdError };

export type StoreRequest =
  /** With the mark of an earlier answer, a slotted store may answer `quiet`. */
  | { readonly op: "read"; readonly register: string; readonly quietSince?: string }
  /** Atomic stores: writes `next` if the cell is `expected` (`undefined`: never written) and its marker is `id`, all in one step. */
  | {
      readonly op: "replace";
      readonly register: string;
      readonly id: string;
      readonly expected: Uint8Array | undefined;
      readonly next: Uint8Array;
    }
  /**
   * Slotted stores: writes this writer's slot, and announces that, unless it is `quiet`: a renewal, which tells those who hold
   * nothing that they have to know.
   */
  | { readonly op: "put"; readonly register: string; readonly next: Uint8Array; readonly quiet?: boolean }
  /** Up to `registersMax` registers whose names begin with `prefix`. */
  | { readonly op: "list"; readonly prefix: string; readonly registersMax: number };

/**
 * What a Δ-lease needs of shared storage: plain cells that hold a few hundred bytes each. A store answers, or it
 * never does; up to t of n > 2t may fall silent. There are two kinds. *Atomic* stores compare and set, so any
 * number of writers share one cell. *Slotted* stores can only write (a sector of a disk): every writer has a slot
 * of its own in each register, and a read returns all of them.
 *
 * Cells are compared by content: no two writes of this library are ever equal (`DeltaRecord`), so content that is
 * what it was has not changed meanwhile.
 */
export interface Store {
  readonly traits: StoreTraits;
  /**
   * Never rejects: what goes wrong is a `failed`. It may take for ever, or answer long after its caller has given up (a
   * ghost write); the caller bounds how many are under way.
   */
  perform(request: StoreRequest, caller?: StoreCaller): Promise<StoreAnswer>;
  /** Leaves no handle open. */
  close(): Promise<void>;
}

/** Who asks, and may want no more. */
export interface StoreCaller {
  /** Asks to give up early. To be read by stores that can: it is made when it is read for the first time. */
  readonly signal: AbortSignal;
}

/** The register that every store has under this name tells the store's marker and which stores belong to its farm. */
export const farmRegister = "leasehold.farm";
