import type { JsonValue } from "../lease/json-value.js";
import type { Duration } from "../lease/options.js";

/** A member of a group. */
export interface Member {
  /** Its name within the group. */
  readonly name: string;
  /** Rises with every registration of the name: a different token means another incarnation of the member. */
  readonly token: bigint;
  /** The member's data. Absent if the member gave none, or if it has not been read yet. */
  readonly data?: JsonValue;
  /**
   * True during the member's `grace` period: its registration has ended, for whatever reason, but it still
   * counts as a member. Always false without `grace`.
   */
  readonly isMissing: boolean;
}

/** A change of a group's membership. */
export interface MemberChange {
  readonly type: "joined" | "changed" | "left";
  /** The member's present state or, if it has left, its last one. `changed`: its `data` differs. */
  readonly member: Member;
}

/** One process's view of a group, and its own registration there. */
export interface Group extends AsyncDisposable {
  readonly group: string;
  /**
   * Whether this process is registered now. False without a name, and between a loss and the next
   * registration.
   */
  readonly isIn: boolean;
  /** The present members, sorted by name. Members that joined before this process appear within moments. */
  readonly members: readonly Member[];
  /**
   * Yields the present members first, then members that join, change or leave. Changes that a slow reader has
   * not taken are merged: it gets the difference between each member's present and last reported state, and
   * nothing about a member that joined and left meanwhile. Ends when the group is left; rejects when the
   * ground reports no more.
   *
   * @throws LeaseholdError `TOO_MANY_WAITERS` with more than 16 readers at a time.
   */
  changes(): AsyncIterableIterator<MemberChange, undefined>;
  /** Removes this process from the group and ends all readers. Idempotent; never rejects. */
  leave(): Promise<void>;
}

/** The options of joining a group. */
export interface GroupOptions {
  /**
   * The name of this process in the group, without a slash: its own, or that of the place that it fills. If
   * the name is taken, the process waits until it is free. Without a name the process only watches.
   */
  name?: string | undefined;
  /** The member's data, as {@link TenureOptions.data}. */
  data?: JsonValue | undefined;
  /**
   * How long a crashed member stays in the group, as {@link TenureOptions.ttl}. Default: the ground's
   * maximum.
   */
  ttl?: Duration | undefined;
  /** How long to wait for the name to become free, then `TIMEOUT`. Default `"1m"`. */
  wait?: Duration | undefined;
  /**
   * How long a member that has gone still counts as present. If it returns within this time, nothing is
   * reported, so a member that restarts or flaps doesn't make this view flap. Default 0: a departure is
   * reported at once. Only affects this process's view.
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
