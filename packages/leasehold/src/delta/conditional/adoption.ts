import type { LeaseholdError } from "../../lease/errors.js";
import { spent } from "../../lease/handle.js";
import { type CellOrError, isCell } from "../cell.js";
import type { AttemptWish } from "../lease-protocol.js";
import type { DeltaRecord } from "../record/record.js";

type Cells = readonly (CellOrError | undefined)[];

/**
 * Whether an attempt that adopts a detached lease may replace a record at once. Its pass in any cell proves
 * that the tenure there has stopped, even in cells that don't have the pass yet.
 */
export function adopted(wish: AttemptWish, cells: Cells): (record: DeltaRecord | undefined) => boolean {
  const detached = recordsOf(cells).filter((record) => isDetached(record, wish));
  return (record) =>
    record !== undefined &&
    detached.some(({ writer, epoch }) => record.writer === writer && record.epoch === epoch);
}

/**
 * Why such an attempt cannot succeed, from the cells of a majority. An adopter that fails leaves the pass in
 * place, so a later epoch without the pass is a tenure, or an attempt by a process that waited for the end.
 * If no cell has the pass, the lease was released or taken over.
 */
export function whyNotAdopted(wish: AttemptWish, cells: Cells, majority: number): LeaseholdError | undefined {
  const { adopts, resource } = wish;
  if (adopts === undefined || cells.filter(isCell).length < majority) return undefined;
  const records = recordsOf(cells);
  const isLater = (record: DeltaRecord) => record.epoch > adopts.token && !isDetached(record, wish);
  const detached = records.filter((record) => isDetached(record, wish));
  if (detached.length === 0 || records.some(isLater))
    return spent(resource, "it was attached before, released, or taken over after its end");
  if (detached.some(({ asked }) => asked?.broken === true)) return spent(resource, "it was broken");
  return undefined;
}

function isDetached({ state, detached }: DeltaRecord, { adopts }: AttemptWish): boolean {
  return adopts !== undefined && state === "held" && detached === adopts.pass;
}

function recordsOf(cells: Cells): DeltaRecord[] {
  return cells.flatMap((cell) => (isCell(cell) && cell.record !== undefined ? [cell.record] : []));
}
