import { majorityOf } from "../../common/majority.js";

/** The members that coordinate one resource, as indices into the cluster's member list. */
export interface Cell {
  readonly members: readonly number[];
  readonly majority: number;
}

export function cellOf(members: readonly number[]): Cell {
  return { members, majority: majorityOf(members.length) };
}

/** Number of members in a set kept as a bit mask. */
export function sizeOf(set: number): number {
  let bits = set - ((set >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return (((bits + (bits >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
