import { Tokens } from "../../kit/checkers/tokens.js";
import { isConditional } from "../stage/plan.js";
import type { StorageObserver, StorageReport, WorldView } from "../stage/observer.js";

/**
 * Tokens: no two tenures ever have the same, whatever the delays, except readers of one time; and each is greater than
 * every earlier one, always on the conditional lease, otherwise once delays are bounded.
 */
export function claimTokens(view: WorldView, report: StorageReport): StorageObserver {
  const found = (text: string) => report("tokens", text);
  const tokens = new Tokens<bigint>({ twice: found, falls: found });
  return {
    began({ party, place, token, shared }) {
      const { plan, nowMs, settledMs } = view;
      const ordered = isConditional(plan.ground) || nowMs >= settledMs;
      const resource = place === undefined ? "the lease" : `slot ${place.slot}`;
      tokens.given({ resource, token, who: party.writer, shared, ordered });
    },
  };
}
