import type { LeaseholdError } from "../../lease/errors.js";
import type { World } from "../../common/ports.js";
import type { Reading } from "../protocol/clock.js";
import type { CellMap } from "../protocol/cells.js";
import type { Views } from "../views/views.js";
import type { FleaseSettings } from "../protocol/settings.js";

/** The participant, as seen by lists, explanations and membership changes. */
export interface AdminDriver {
  readonly runner: {
    readonly peer: {
      readonly settings: FleaseSettings;
      readonly cells: CellMap;
      readonly views: Pick<Views, "view">;
    };
    readonly world: Pick<World, "timers" | "random">;
    /** A fresh reading of the peer's clock. */
    now(): Reading;
  };
  /** Calls a member outside the protocol (admin RPC); rejects without an answer. */
  ask(member: number, method: string, params: object, timeoutMs: number): Promise<unknown>;
  /** Addresses of members, for messages. */
  address(member: number): string;
  /**
   * The refusal, when the members that have not refused this participant are no majority; otherwise
   * `undefined`.
   */
  refusal(): LeaseholdError | undefined;
}
