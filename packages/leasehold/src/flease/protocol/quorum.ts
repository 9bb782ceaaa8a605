import { least } from "../../common/lists.js";
import { majorityOf } from "../../common/majority.js";

/** The members that coordinate one resource, as indices into the cluster's member list. */
export interface Cell {
  readonly members: readonly number[];
  /** Any set of this many members is a quorum. */
  readonly majority: number;
  /** In a joint view: a quorum needs a majority of the old cell and one of the new cell (3.14). */
  readonly halves: readonly [before: Half, after: Half] | undefined;
}

/** One of the two cells of a joint view. */
interface Half {
  /** Its members, as bits by position in the joint cell. */
  readonly set: number;
  readonly size: number;
  readonly majority: number;
}

export function cellOf(members: readonly number[]): Cell {
  return { members, majority: majorityOf(members.length), halves: undefined };
}

/** The cell of a joint view, made of the resource's old cell and its new one. */
export function jointCellOf(before: Cell, after: Cell): Cell {
  const members = [...new Set([...before.members, ...after.members])].sort((one, other) => one - other);
  const halfOf = (cell: Cell): Half => ({
    set: cell.members.reduce((set, member) => set | (1 << members.indexOf(member)), 0),
    size: cell.members.length,
    majority: cell.majority,
  });
  const halves = [halfOf(before), halfOf(after)] as const;
  const sparable = least(halves.map(({ size, majority }) => size - majority));
  return { members, majority: members.length - sparable, halves };
}

/** Whether this set, as bits by position in the cell, is a quorum. */
export function isQuorum(cell: Cell, set: number): boolean {
  if (cell.halves === undefined) return sizeOf(set) >= cell.majority;
  return cell.halves.every((half) => sizeOf(set & half.set) >= half.majority);
}

/** Whether the members outside this set contain no quorum. */
export function excludesQuorum(cell: Cell, set: number): boolean {
  if (cell.halves === undefined) return sizeOf(set) > cell.members.length - cell.majority;
  return cell.halves.some((half) => sizeOf(set & half.set) > half.size - half.majority);
}

/**
 * Whether every quorum includes a member of this set, both in this view and in the one that follows it. In a
 * joint view the set has to block the new cell: a majority of that cell is a quorum once the change is over.
 */
export function excludesQuorumFromNowOn(cell: Cell, set: number): boolean {
  const after = cell.halves?.[1];
  if (after === undefined) return excludesQuorum(cell, set);
  return sizeOf(set & after.set) > after.size - after.majority;
}

/** Number of members in a set kept as a bit mask. */
export function sizeOf(set: number): number {
  let bits = set - ((set >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return (((bits + (bits >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
