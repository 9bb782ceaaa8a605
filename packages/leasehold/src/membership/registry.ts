import type { JsonValue } from "../lease/json-value.js";

/** One name of a group, as the ground tells of it. */
export interface Presence {
  readonly name: string;
  readonly isThere: boolean;
  readonly token: bigint;
  readonly data?: JsonValue | undefined;
}

/** What a member says of itself where it registers. */
export interface Registration {
  readonly name: string;
  readonly data: JsonValue | undefined;
}

/** Where a group is kept. */
export interface Registry {
  /**
   * Registers the name when it is free, and anew after each loss, until the signal aborts. Resolves when it
   * has been taken out; rejects when it cannot be registered.
   *
   * @param told whether it is registered now
   */
  keep(registration: Registration, signal: AbortSignal, told: (isIn: boolean) => void): Promise<void>;
  /**
   * Tells who is there and what changes until the signal aborts. Rejects when nothing more will be told;
   * throws where it cannot begin.
   */
  follow(signal: AbortSignal, told: (presence: Presence) => void): Promise<void>;
  /** Called once, when the group has been left and nothing of it is under way. */
  close(): void;
}
