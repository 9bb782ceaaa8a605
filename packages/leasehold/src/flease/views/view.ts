import type { FleaseSettings } from "../protocol/settings.js";

/** Members, by their ids in rising order, and how many of them coordinate one resource. */
export interface Membership {
  readonly members: readonly string[];
  readonly cellSize: number;
}

/** A view (3.14): who the members are. */
export interface View extends Membership {
  /** A change goes from view v by the joint view v + 1 to v + 2, which has the new members alone. */
  readonly number: number;
  /**
   * Stands in every message. It names the view among all views of this number: two members that begin a
   * change at one moment make different views.
   */
  readonly stamp: number;
  /** In a joint view: the old members; a majority of their cell is needed, too. */
  readonly before: Membership | undefined;
}

/** A view, and the data sent with it. */
export interface ViewAndBarrier {
  readonly view: View;
  /** Ballots up to this number are refused: they may belong to tenures of views that are over. */
  readonly barrier: number;
}

/** A participant's view as it is stored for its next start. */
export interface KeptView extends ViewAndBarrier {
  /** It votes in no view below this number. Absent: it has been a member from the beginning. */
  readonly votesFrom?: number | undefined;
  /**
   * The operator says that the cluster is new, and no view is stored: no vote before the first wait is over
   * and the view is stored.
   */
  readonly isFirst?: boolean | undefined;
}

/** Whether a member without a stored view belongs to a new cluster, or to a running one. */
export type ClusterState = "new" | "existing";

/** A member that no view counts yet, or that has forgotten which views counted it. */
export const neverVotes = Number.MAX_SAFE_INTEGER;

/**
 * The start of a member that finds no stored view (MUST). This is its first start, or its file is lost. Then
 * it may have been in later views, and may have reported that it left this one. So it votes by the founding
 * view only if the cluster is new; otherwise only in views that it is invited to from now on.
 */
export function viewAtFirstStart(first: View, state: ClusterState): KeptView {
  const isNew = state === "new";
  return { view: first, barrier: 0, isFirst: isNew, votesFrom: isNew ? 0 : neverVotes };
}

/** A participant's view as it is sent to another. All of it stays true, however late it arrives. */
export interface ViewNote extends ViewAndBarrier {
  /**
   * In a joint view: the members of the view before that have been out of it for a full wait, with the
   * greatest ballot that each may have promised there.
   */
  readonly settled: ReadonlyMap<string, number>;
}

/**
 * A stamp is a u32: the number of the view, and above it the place of the member that began the change, which
 * has 9 bits, as there are more than 256 members at most.
 */
const numbersOfViews = 2 ** 23;

/** The greatest number that a view may have: 4 million changes. */
export const viewNumberMax = numbersOfViews - 1;

export const stampMax = 2 ** 32 - 1;

/** The view that a cluster begins with. */
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

/** The view that a joint one leads to. */
export function viewAfter({ number, stamp, members, cellSize }: View): View {
  return { number: number + 1, stamp: stamp + 1, members, cellSize, before: undefined };
}

/** All that have a vote in a view. */
export function votersOf({ members, before }: View): string[] {
  return [...new Set([...members, ...(before?.members ?? [])])].sort();
}
