import type { LeaseholdError } from "../../lease/errors.js";
import type { World } from "../../common/ports.js";
import type { Reading } from "../protocol/clock.js";
import type { CellMap } from "../protocol/cells.js";
import type { Views } from "../views/views.js";
import type { FleaseSettings } from "../protocol/settings.js";

/** What asking members for lists, explanations and changes needs of a participant. */
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
  /** Asks a member something beside the protocol (admin RPC); rejects when it does not answer. */
  ask(member: number, method: string, params: object, timeoutMs: number): Promise<unknown>;
  /** Where members are, for people. */
  address(member: number): string;
  /**
   * Why so many members refuse this participant for good that there is no majority for it; `undefined`
   * otherwise.
   */
  refusal(): LeaseholdError | undefined;
}
