import type { FleaseSettings } from "../protocol/settings.js";

/** Members, by ascending id, and how many of them coordinate one resource. */
export interface Membership {
  readonly members: readonly string[];
  readonly cellSize: number;
}

/** A view (3.14): who the members are. */
export interface View extends Membership {
  /** A change goes from view v through the joint view v + 1 to v + 2, which has only the new members. */
  readonly number: number;
  /**
   * Contained in every message. It identifies the view among all views of the same number: two members that
   * begin a change at the same moment make different views.
   */
  readonly stamp: number;
  /** In a joint view: the old members; a majority of their cell is needed, too. */
  readonly before: Membership | undefined;
}

/** A view, and the data sent with it. */
export interface ViewAndBarrier {
  readonly view: View;
  /** Ballots up to this number are refused: they may belong to tenures of former views. */
  readonly barrier: number;
}

/** A participant's view as stored for its next start. */
export interface KeptView extends ViewAndBarrier {
  /** It doesn't vote in views below this number. Absent: it has been a member from the beginning. */
  readonly votesFrom?: number | undefined;
  /**
   * Set if the operator declared the cluster new and no view is stored. The member doesn't vote until the
   * first wait is over and the view is stored.
   */
  readonly isFirst?: boolean | undefined;
}

/** Whether a member without a stored view belongs to a new cluster, or to a running one. */
export type ClusterState = "new" | "existing";

/** The `votesFrom` of a member that no view counts yet, or that has forgotten which views counted it. */
export const neverVotes = Number.MAX_SAFE_INTEGER;

/**
 * The start of a member that finds no stored view (MUST). Either this is its first start, or its file is
 * lost. In the second case it may have been in later views, and may have reported leaving this one. So it
 * votes in the founding view only if the cluster is new; otherwise only in views that it is invited to from
 * now on.
 */
export function viewAtFirstStart(first: View, state: ClusterState): KeptView {
  const isNew = state === "new";
  return { view: first, barrier: 0, isFirst: isNew, votesFrom: isNew ? 0 : neverVotes };
}

/** A participant's view as sent to another. All of it remains true, however late it arrives. */
export interface ViewNote extends ViewAndBarrier {
  /**
   * In a joint view: the members that left the previous view a full wait ago, each with the greatest ballot
   * that it may have promised there.
   */
  readonly settled: ReadonlyMap<string, number>;
}

/**
 * A stamp is a u32: the view's number in the lower bits, and in the upper 9 bits the index of the member that
 * began the change. There can be more than 256 members.
 */
const numbersOfViews = 2 ** 23;

/** The greatest view number: enough for 4 million changes. */
export const viewNumberMax = numbersOfViews - 1;

export const stampMax = 2 ** 32 - 1;

/** The view in which a cluster begins. */
export function firstView({ view, members, cellSize }: FleaseSettings): View {
  return { number: view % numbersOfViews, stamp: view, members: [...members], cellSize, before: undefined };
}

/** The joint view that begins a change; `by` is the member of `from` that begins it. */
export function jointView(from: View, { members, cellSize }: Membership, by: string): View {
  const number = from.number + 1;
  const stamp = from.members.indexOf(by) * numbersOfViews + number;
  const before = { members: from.members, cellSize: from.cellSize };
  return { number, stamp, members: [...members].sort(), cellSize, before };
}

/** The view that follows a joint one. */
export function viewAfter({ number, stamp, members, cellSize }: View): View {
  return { number: number + 1, stamp: stamp + 1, members, cellSize, before: undefined };
}

/** All members that vote in a view. */
export function votersOf({ members, before }: View): string[] {
  return [...new Set([...members, ...(before?.members ?? [])])].sort();
}
