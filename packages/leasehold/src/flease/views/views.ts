import { greatest } from "../../common/lists.js";
import type { Reading } from "../protocol/clock.js";
import { numberAt } from "../protocol/ballot.js";
import { cellSizeMax, membersMax, whyNoMemberId } from "../protocol/settings.js";
import type { FleaseSettings } from "../protocol/settings.js";
import { firstView, jointView, neverVotes, viewAfter, viewNumberMax, votersOf } from "./view.js";
import type { KeptView, Membership, View, ViewNote } from "./view.js";

/**
 * The number of members that may still be in the old view when the first one enters the view after the joint
 * one: no majority of any of their cells.
 */
function stragglersMax({ cellSize, members }: Membership): number {
  return Math.floor((Math.min(cellSize, members.length) - 1) / 2);
}

/**
 * Tracks which view one participant is in, and when it may enter the next (3.14, E2). Its view never goes
 * back: `keep` stores a view before it counts, and a restart begins with the stored view.
 *
 * Quorums of a joint view intersect those of the views before and after it, but those two may not intersect
 * each other. So nobody enters the view after until all leases of the view before are over and none can
 * arise: in every majority of that view, at least one member left it for good a full wait ago. A participant
 * finds this out by itself, or learns that another has entered the view after.
 */
export class Views {
  readonly #settings: FleaseSettings;
  readonly #self: string;
  readonly #keep: (kept: KeptView) => boolean;
  #view: View;
  #barrier: number;
  #votesFrom: number;
  #isFirst: boolean;
  /** A newer view is known, but could not be stored. */
  #isBehind = false;
  #enteredMono: number;
  #enteredHi: number;
  /** The greatest upper bound that the clock ever showed: a restarted clock may be behind it. */
  #highestHi: number;
  #settled = new Map<string, number>();

  /**
   * @param keep stores a view before it counts; returns false if it cannot, and then the view stays as it is
   */
  constructor(
    settings: FleaseSettings,
    self: string,
    kept: KeptView | undefined,
    now: Reading,
    keep: (kept: KeptView) => boolean,
  ) {
    this.#settings = settings;
    this.#self = self;
    this.#keep = keep;
    this.#view = kept?.view ?? firstView(settings);
    this.#barrier = kept?.barrier ?? 0;
    this.#votesFrom = kept?.votesFrom ?? 0;
    this.#isFirst = kept?.isFirst ?? false;
    this.#enteredMono = now.mono;
    this.#enteredHi = this.#highestHi = now.hi;
  }

  get view(): View {
    return this.#view;
  }

  get barrier(): number {
    return this.#barrier;
  }

  /**
   * Whether its acceptor may answer (MUST). It may not vote unless a view certainly counts it, nor while it
   * knows of a view newer than its own.
   */
  get mayVote(): boolean {
    return !this.#isFirst && !this.#isBehind && this.#view.number >= this.#votesFrom;
  }

  /** Whether no view that this member knows counts its vote. */
  get isLearner(): boolean {
    const { number } = this.#view;
    return this.#isBehind || number < this.#votesFrom || !votersOf(this.#view).includes(this.#self);
  }

  /** Why a member has no vote although its view includes it; for the operator. */
  get notice(): string | undefined {
    if (this.#isBehind) return "the members have changed, and this one could not keep that: it has no vote";
    if (this.#view.number >= this.#votesFrom || !votersOf(this.#view).includes(this.#self)) return undefined;
    return "this member has no vote, as its views file was lost: remove it and add it again";
  }

  /**
   * Handles the announcement of a change that adds this member in the view of this number: it may vote from
   * that view on. False when that cannot be stored, or when a view already counts this member: its state of
   * that time is lost, so it must be removed first.
   */
  invite(number: number): boolean {
    if (!this.mayBeInvited(number)) return false;
    const votesFrom = Math.min(number, this.#votesFrom);
    if (!this.#keep({ view: this.#view, barrier: this.#barrier, votesFrom })) return false;
    this.#votesFrom = votesFrom;
    return true;
  }

  /** False when it is in a later view, or in one that counts it. */
  mayBeInvited(number: number): boolean {
    return number > this.#view.number && !votersOf(this.#view).includes(this.#self);
  }

  /** The note for other participants. */
  note(): ViewNote {
    return { view: this.#view, barrier: this.#barrier, settled: new Map(this.#settled) };
  }

  /** Why no change to these members may begin at this member now; `undefined` when one may. */
  whyNoChange({ members, cellSize }: Membership): string | undefined {
    const { before, members: present } = this.#view;
    if (before !== undefined) return "another change is under way";
    if (this.#view.number + 2 > viewNumberMax)
      return `view ${this.#view.number} is the last that there can be`;
    if (!present.includes(this.#self)) return `${this.#self} is no member of the present view`;
    if (!this.mayVote) return `${this.#self} has no vote`;
    const added = members.filter((id) => !present.includes(id));
    const removed = present.filter((id) => !members.includes(id));
    if (added.length > 1 || removed.length > 1) return "one change at a time";
    const noId = added.map(whyNoMemberId)[0];
    if (noId !== undefined) return noId;
    if (members.length > membersMax) return `a cluster has at most ${membersMax} members`;
    if (cellSize < 1 || cellSize > Math.min(members.length, cellSizeMax))
      return `no cells of ${cellSize} among ${members.length}`;
    if (added.length + removed.length === 0 && cellSize === this.#view.cellSize) return "nothing changes";
    return undefined;
  }

  /** Begins a change: enters the joint view. False when the view could not be stored. */
  change(next: Membership, now: Reading): boolean {
    const why = this.whyNoChange(next);
    if (why !== undefined) throw new Error(`assertion failed: ${why}`);
    return this.#enter(jointView(this.#view, next, this.#self), this.#barrier, now);
  }

  /**
   * Handles another participant's note of its view. True when this participant has entered that view: that a
   * member is in a view shows that the view may be entered. Of two views with the same number, it keeps its
   * own.
   */
  hear({ view, barrier, settled }: ViewNote, now: Reading): boolean {
    const isNewer = view.number > this.#view.number;
    // The cluster is not new: a file was lost, and with it the record of this member's former views.
    if (isNewer && this.#isFirst) this.#votesFrom = neverVotes;
    if (isNewer && !this.#enter(view, Math.max(barrier, this.#barrier), now)) {
      this.#isBehind = true;
      return false;
    }
    if (view.stamp === this.#view.stamp) for (const [id, top] of settled) this.#settled.set(id, top);
    return isNewer;
  }

  /** To be called several times a second. True when it has entered the view after a joint one. */
  look(now: Reading): boolean {
    this.#highestHi = Math.max(this.#highestHi, now.hi);
    if (this.#isFirst && this.waitLeftMs(now) === 0)
      this.#isFirst = !this.#keep({ view: this.#view, barrier: this.#barrier });
    const { before } = this.#view;
    if (before === undefined) return false;
    if (before.members.includes(this.#self) && this.waitLeftMs(now) === 0)
      this.#settled.set(this.#self, this.#greatestPromise());
    if (!this.#formerIsOver(before)) return false;
    return this.#enter(viewAfter(this.#view), greatest(this.#settled.values(), this.#barrier), now);
  }

  /**
   * How long until this member has been in its view for a full wait, ms. It left the previous view, or
   * started, that long ago.
   */
  waitLeftMs(now: Reading): number {
    const { waitRateMs, waitWallMs } = this.#settings;
    const rate = this.#enteredMono + waitRateMs - now.mono;
    const wall = this.#enteredHi + waitWallMs - now.lo;
    return Math.max(0, rate, wall);
  }

  /** In a joint view: members of the previous view that are not known to have left it a full wait ago. */
  unsettled(): string[] {
    return (this.#view.before?.members ?? []).filter((id) => !this.#settled.has(id));
  }

  /** Whether no lease of the previous view is alive and none can arise. */
  #formerIsOver(before: Membership): boolean {
    return this.unsettled().length <= stragglersMax(before);
  }

  /**
   * Every ballot that an acceptor promised was within ε and a millisecond of its clock. A restarted
   * acceptor's clock may be ε behind what it showed before.
   */
  #greatestPromise(): number {
    return numberAt(this.#enteredHi + 2 * this.#settings.maxClockSkewMs + 2);
  }

  #enter(view: View, barrier: number, now: Reading): boolean {
    if (!this.#keep({ view, barrier, votesFrom: this.#votesFrom })) return false;
    this.#view = view;
    this.#barrier = barrier;
    this.#isFirst = this.#isBehind = false;
    this.#highestHi = Math.max(this.#highestHi, now.hi);
    this.#enteredMono = now.mono;
    this.#enteredHi = this.#highestHi;
    this.#settled = new Map();
    return true;
  }
}
