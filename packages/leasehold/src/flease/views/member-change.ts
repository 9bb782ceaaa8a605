import { isRecord } from "../../common/json.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { ErrorCode } from "../../lease/errors.js";
import { cellSizeDefaultMax } from "../protocol/cells.js";
import type { Membership, View } from "./view.js";

/** A change: a member to add, one to remove, or both (a replacement). */
export interface MemberChange {
  readonly add?: string | undefined;
  /** Address of the member to add, `host:port`. */
  readonly address?: string | undefined;
  readonly remove?: string | undefined;
}

/** The obstacles that a change waits for before it can begin. */
export interface Waiting {
  /** Error code if the wait times out. */
  readonly code: ErrorCode;
  readonly text: string;
  /** This member cannot begin the change; another may. */
  readonly elsewhere?: boolean;
}

/** The state of a change, as reported to callers. */
export interface ViewStatus {
  readonly number: number;
  readonly members: Readonly<Record<string, string>>;
  readonly cellSize: number;
  /**
   * In a joint view: the previous members, the members still missing, and how long this member has waited,
   * ms.
   */
  readonly joint?: {
    readonly before: readonly string[];
    readonly unsettled: readonly string[];
    readonly waitMs: number;
  };
  /** Present if a requested change cannot begin yet. */
  readonly waiting?: Waiting;
}

/** The address of a member, by its id. */
export type AddressOf = (id: string) => string | undefined;

/**
 * Reads a requested change. The caller checks whether `address` is an address.
 *
 * @throws LeaseholdError `INVALID_CONFIG` if it is not a change.
 */
export function readChange(params: unknown): MemberChange {
  const { add, address, remove } = isRecord(params) ? params : {};
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const change = { add: text(add), address: text(address), remove: text(remove) };
  if ((change.add === undefined) !== (change.address === undefined))
    refuse("a member is added with its address");
  if (change.add === undefined && change.remove === undefined) refuse("nothing changes");
  if (change.add !== undefined && !/^[A-Za-z0-9_-]{1,64}$/.test(change.add))
    refuse(`a member's id is 1 to 64 characters of A-Z a-z 0-9 _ -, and ${JSON.stringify(add)} is not`);
  return change;
}

/** Whether the change is complete or in progress, in case a caller that lost the answer asks again. */
export function isDone({ add, address, remove }: MemberChange, view: View, addressOf: AddressOf): boolean {
  const { members, before } = view;
  if (before !== undefined) {
    const wanted = before.members.filter((id) => id !== remove && id !== add);
    return sameIds(members, add === undefined ? wanted : [...wanted, add]);
  }
  if (add === undefined || !members.includes(add)) return false;
  return addressOf(add) === address && (remove === undefined || !members.includes(remove));
}

/**
 * The members after a change of this view.
 *
 * @throws LeaseholdError `INVALID_CONFIG` for a change that the view does not allow.
 */
export function membersAfter(
  { add, address, remove }: MemberChange,
  view: View,
  addressOf: AddressOf,
): Membership {
  const members = view.members.filter((id) => id !== remove);
  if (remove !== undefined && members.length === view.members.length)
    refuse(`${JSON.stringify(remove)} is no member`);
  if (add !== undefined) {
    if (view.members.includes(add)) refuse(`${JSON.stringify(add)} is a member already`);
    const there = members.find((id) => addressOf(id) === address);
    if (there !== undefined) refuse(`${address} is the address of ${there}`);
    members.push(add);
  }
  return { members: members.sort(), cellSize: cellSizeAfter(view, members.length) };
}

/** In a small cluster all members coordinate each resource; otherwise the cell size stays. */
function cellSizeAfter({ members, cellSize }: Membership, count: number): number {
  if (cellSize === members.length && cellSize < cellSizeDefaultMax)
    return Math.min(count, cellSizeDefaultMax);
  return Math.min(cellSize, count);
}

function sameIds(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((id) => others.includes(id));
}

/** @throws LeaseholdError `INVALID_CONFIG`. */
export function refuse(why: string): never {
  throw new LeaseholdError("INVALID_CONFIG", `the members are not changed: ${why}`);
}
