import type { LeaseholdError } from "../../lease/errors.js";
import { spent } from "../../lease/handle.js";
import { type CellOrError, isCell } from "../cell.js";
import type { AttemptWish } from "../lease-protocol.js";
import type { DeltaRecord } from "../record/record.js";

type Cells = readonly (CellOrError | undefined)[];

/**
 * What an attempt that is to adopt a detached lease may replace at once: its pass in any cell proves that the tenure there has
 * stopped, also where the cell has not heard of it yet.
 */
export function adopted(wish: AttemptWish, cells: Cells): (record: DeltaRecord | undefined) => boolean {
  const detached = recordsOf(cells).filter((record) => isDetached(record, wish));
  return (record) =>
    record !== undefined &&
    detached.some(({ writer, epoch }) => record.writer === writer && record.epoch === epoch);
}

/**
 * Why such an attempt cannot go on, by what a majority shows. Who loses an attempt to adopt leaves the pass behind; so a later epoch
 * without it is a tenure, or an attempt of one who has waited for the end. Where nobody has the pass, it was released or taken over.
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
