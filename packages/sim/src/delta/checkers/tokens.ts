import { Tokens } from "../../kit/checkers/tokens.js";
import { isConditional } from "../stage/plan.js";
import type { StorageObserver, StorageReport, WorldView } from "../stage/observer.js";

/**
 * Tokens: whatever the delays, no two tenures have the same token, except concurrent readers. Each token is
 * greater than every earlier one: always for the conditional lease, otherwise once delays are bounded.
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
