import { greatest } from "leasehold/inner/common/lists.js";
import { Exclusion } from "../../kit/checkers/exclusion.js";
import type { Claim, StorageObserver, StorageReport, WorldView } from "../stage/observer.js";
import { isConditional } from "../stage/plan.js";
import type { SimParty } from "../../kit/party.js";

/**
 * Exclusion: no two processes hold at one instant, each by its own clocks, unless both are readers. This must
 * hold always for the conditional lease. For the paper's lease it must hold throughout a run in which delays
 * are bounded (Property 1, Lemma 1), and otherwise once they have been bounded for a while (Property 4, Lemma
 * 8). Holds begin and are extended only at events, so checking at events suffices.
 */
export function claimExclusion(view: WorldView, report: StorageReport): StorageObserver {
  const exclusion = new Exclusion<Claim>(
    {
      isHeld: (claim) => claim.remainingMs() > 0,
      nameOf: ({ party, token }) => `${party.writer} (token ${token})`,
      isShared: ({ shared }) => shared,
    },
    (text) => report("exclusion", text),
  );
  const look = () => {
    const { plan, nowMs, settledMs, claims } = view;
    if (plan.ground === "counted") lookAtSlots(claims, exclusion, report);
    else if (isConditional(plan.ground) || nowMs >= settledMs) exclusion.look("the lease", claims);
  };
  return { began: look, renewed: (_claim, succeeded) => succeeded && look() };
}

/**
 * Counted leases: each slot has one holder, and there are no more holders than the greatest limit among them.
 */
function lookAtSlots(claims: Iterable<Claim>, exclusion: Exclusion<Claim>, report: StorageReport): void {
  const held = [...claims].filter((claim) => claim.remainingMs() > 0);
  const places = held.map(({ place }) => place!);
  for (const slot of new Set(places.map((place) => place.slot)))
    exclusion.look(
      `slot ${slot}`,
      held.filter(({ place }) => place!.slot === slot),
    );
  const limit = greatest(
    places.map((place) => place.limit),
    0,
  );
  if (held.length > limit) report("counted", `${held.length} hold, of ${limit} at most`);
  const beyond = places.find((place) => place.slot >= place.limit);
  if (beyond !== undefined) report("counted", `slot ${beyond.slot} was given to one of ${beyond.limit}`);
}

/** The oracle (Fig. 7, Lemma 10): once delays are bounded there are never two leaders. */
export function leaderExclusion(view: WorldView, report: StorageReport): StorageObserver {
  const exclusion = new Exclusion<SimParty>({ isHeld: () => true, nameOf: ({ writer }) => writer }, (text) =>
    report("exclusion", text),
  );
  return {
    looked(leaders) {
      const { plan, nowMs, settledMs } = view;
      const elects = plan.ground === "oracle" || plan.ground === "consensus";
      if (elects && nowMs >= settledMs) exclusion.look("the lead", leaders);
    },
  };
}
