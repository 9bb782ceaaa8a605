import { LeaseholdError } from "../lease/errors.js";
import { decodeRecord } from "./record/codec.js";
import { corrupt } from "./record/envelope.js";
import type { DeltaRecord } from "./record/record.js";
import { compareStamps } from "./record/stamp.js";
import type { StoreAnswer } from "./store.js";

/** The last known content of a cell in an atomic store. */
export interface Cell {
  /** `undefined`: never written. */
  readonly content: Uint8Array | undefined;
  readonly record: DeltaRecord | undefined;
}

export type CellOrError = Cell | { readonly error: LeaseholdError };

/** Cells come with the answer to a read, and with the answer to a write that found different content. */
export function cellOf(answer: StoreAnswer, resource: string, storeName: string): CellOrError | undefined {
  if (answer.kind === "failed") return { error: answer.error };
  if (answer.kind !== "cells" && answer.kind !== "conflict") return undefined;
  return readCells(answer.cells, resource, storeName);
}

/** With several slots, the record with the greatest timestamp counts. */
export function readCells(cells: readonly Uint8Array[], resource: string, storeName: string): CellOrError {
  let greatest: Cell = { content: undefined, record: undefined };
  try {
    for (const content of cells) {
      const record = decodeRecord(content);
      if (record.resource !== resource)
        throw corrupt(`it is stored in the place of ${JSON.stringify(resource)}`, content);
      if (compareStamps(record, greatest.record) > 0) greatest = { content, record };
    }
    return greatest;
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    return { error: new LeaseholdError(error.code, `${storeName}: ${error.message}`) };
  }
}

export function isCell(cell: CellOrError | undefined): cell is Cell {
  return cell !== undefined && !("error" in cell);
}
