import type { JsonValue } from "../lease/json-value.js";
import type { Duration } from "../lease/options.js";

/** A member of a group. */
export interface Member {
  /** Its name within the group. */
  readonly name: string;
  /** Rises with every registration of the name: another token is another incarnation of the member. */
  readonly token: bigint;
  /** The member's data; absent when it gave none, or when it has not been read yet. */
  readonly data?: JsonValue;
  /**
   * Its registration has ended, for whatever reason, and its `grace` period runs: it still counts as in.
   * Always false without `grace`.
   */
  readonly isMissing: boolean;
}

/** A change since a reader's last one. */
export interface MemberChange {
  readonly type: "joined" | "changed" | "left";
  /** Its present state; for a member that has left, the last one. `changed`: its `data` differs. */
  readonly member: Member;
}

/** A group as one process sees it, and that process's place in it. */
export interface Group extends AsyncDisposable {
  readonly group: string;
  /**
   * Whether this process is registered now. False without a name, and from a loss until it is registered
   * again.
   */
  readonly isIn: boolean;
  /** The present members, by name. Members that joined before this process appear within moments. */
  readonly members: readonly Member[];
  /**
   * First the present members, then those that join and leave. Changes that a slow reader has not taken are
   * merged: it gets each member's difference to its last reported state, and nothing of one that joined and
   * left meanwhile. Ends when the group is left; rejects when the ground reports no more.
   *
   * @throws LeaseholdError `TOO_MANY_WAITERS` with more than 16 readers at a time.
   */
  changes(): AsyncIterableIterator<MemberChange, undefined>;
  /** Removes this process, and ends the readers. Idempotent; never rejects. */
  leave(): Promise<void>;
}

/** The options of joining a group. */
export interface GroupOptions {
  /**
   * The name of this process in the group, without a slash: its own, or that of the place that it fills. Of
   * two with one name the second waits until the first has gone. Without it the process only watches.
   */
  name?: string | undefined;
  /** The member's data, as {@link TenureOptions.data}. */
  data?: JsonValue | undefined;
  /** How long a crashed member stays in, as {@link TenureOptions.ttl}. Default: the ground's longest. */
  ttl?: Duration | undefined;
  /** Timeout of registering the name, which must become free. Default `"1m"`; then `TIMEOUT`. */
  wait?: Duration | undefined;
  /**
   * A member that goes stays in the group for this long, and one that is back by then was never away: so a
   * member that restarts, or that flaps, does not flap this process's view. Default 0: a departure is
   * reported at once. It only affects the view of this process.
   */
  grace?: Duration | undefined;
  /**
   * After a loss this process registers again after a random time up to this, so that members that were lost
   * together do not return together. Default `"1s"`.
   */
  jitter?: Duration | undefined;
  /** Leaves the group when it aborts; while joining, the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}
