import { LeaseholdError } from "../lease/errors.js";
import { decodeRecord } from "./codec.js";
import { corrupt } from "./line.js";
import type { DeltaRecord } from "./record.js";
import type { StoreAnswer } from "./store.js";

/** What an atomic store's cell holds, as it is known. */
export interface Cell {
  /** `undefined`: never written. */
  readonly content: Uint8Array | undefined;
  readonly record: DeltaRecord | undefined;
}

export type CellReading = Cell | { readonly error: LeaseholdError };

/** Cells are in the answer to a read, and in the one to a write that found something else than it expected. */
export function cellOf(answer: StoreAnswer, resource: string): CellReading | undefined {
  if (answer.kind === "failed") return { error: answer.error };
  if (answer.kind !== "cells" && answer.kind !== "conflict") return undefined;
  return readCells(answer.cells, resource);
}

export function readCells(cells: readonly Uint8Array[], resource: string): CellReading {
  const [content] = cells;
  if (content === undefined) return { content: undefined, record: undefined };
  try {
    if (cells.length > 1) throw corrupt("there are several where only one can be", content);
    const record = decodeRecord(content);
    if (record.resource !== resource)
      throw corrupt(`it stands where that of ${JSON.stringify(resource)} belongs`, content);
    return { content, record };
  } catch (error) {
    if (error instanceof LeaseholdError) return { error };
    throw error;
  }
}

export function isCell(reading: CellReading | undefined): reading is Cell {
  return reading !== undefined && !("error" in reading);
}
