import type { JsonValue } from "../lease/json-value.js";

/** One name in a group, as reported by the ground. */
export interface Presence {
  readonly name: string;
  readonly isThere: boolean;
  readonly token: bigint;
  readonly data?: JsonValue | undefined;
}

/** A member's data at its registration. */
export interface Registration {
  readonly name: string;
  readonly data: JsonValue | undefined;
}

/** The storage of a group. */
export interface Registry {
  /**
   * Registers the name when it is free, and again after each loss, until the signal aborts. Resolves when the
   * name has been removed; rejects when it cannot be registered.
   *
   * @param report called with whether the name is registered now
   */
  keep(registration: Registration, signal: AbortSignal, report: (isIn: boolean) => void): Promise<void>;
  /**
   * Reports the members and their changes until the signal aborts. Rejects when it cannot continue; throws
   * when it cannot start.
   */
  follow(signal: AbortSignal, report: (presence: Presence) => void): Promise<void>;
  /** Called once, when the group has been left and none of its operations is in progress. */
  close(): void;
}
