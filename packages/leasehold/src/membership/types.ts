import type { JsonValue } from "../lease/json-value.js";
import type { Duration } from "../lease/options.js";

/** One that is in a group. */
export interface Member {
  /** Its name within the group. */
  readonly name: string;
  /** Rises with every registration of the name: another token is another life of the member. */
  readonly token: bigint;
  /** What it says of itself; absent when it says nothing, or when that has not been read yet. */
  readonly data?: JsonValue;
  /**
   * Its registration has ended, by its own will or not, and its `grace` runs: it counts as in. Always false
   * without `grace`.
   */
  readonly isMissing: boolean;
}

/** What has changed since a reader was last told. */
export interface MemberChange {
  readonly type: "joined" | "changed" | "left";
  /** As it is now; of one that has left, as it was. `changed`: its `data` is another. */
  readonly member: Member;
}

/** A group as one process sees it, and its own place there. */
export interface Group extends AsyncDisposable {
  readonly group: string;
  /** This process is registered now. False without a name, and from a loss until it is registered anew. */
  readonly isIn: boolean;
  /** Who is in, by name. Those who were there before this process come within moments after it. */
  readonly members: readonly Member[];
  /**
   * First who is in, then who comes and goes. What a slow reader has not taken is merged: it is told how each
   * member differs from what it was told last, and nothing of one that came and went meanwhile. Ends when the
   * group is left; rejects when the ground tells no more.
   *
   * @throws LeaseholdError `TOO_MANY_WAITERS` with more than 16 readers at a time.
   */
  changes(): AsyncIterableIterator<MemberChange, undefined>;
  /** Takes this process out, and ends the readers. Idempotent; never rejects. */
  leave(): Promise<void>;
}

/** How to join a group. */
export interface GroupOptions {
  /**
   * The name of this process in the group, without a slash: its own, or that of the place that it fills. Of
   * two with one name the second waits until the first has gone. Without it the process watches only.
   */
  name?: string | undefined;
  /** What it says of itself, as {@link TenureOptions.data}. */
  data?: JsonValue | undefined;
  /** One that has crashed is in for so long, as {@link TenureOptions.ttl}. Default: the ground's longest. */
  ttl?: Duration | undefined;
  /** How long to wait until the name is free and registered. Default `"1m"`; then `TIMEOUT`. */
  wait?: Duration | undefined;
  /**
   * One that goes stays among the members for so long, and one that is back by then has never been away: so a
   * member that restarts, or that flaps, does not flap this process's view. Default 0: who goes is told at
   * once. It counts for the view of this process alone.
   */
  grace?: Duration | undefined;
  /**
   * After a loss this process registers anew after a random time up to this, so that all who were lost at one
   * moment do not come back at one. Default `"1s"`.
   */
  jitter?: Duration | undefined;
  /** Leaves the group when it aborts; before it was joined, the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}
