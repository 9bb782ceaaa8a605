import { LeaderOracle } from "leasehold/inner/delta/paper/leader-oracle.js";
import { perhapsCancelled } from "./cancelled.js";
import { leaseMsOf, type PartsStage } from "../stage/stage.js";

/** The share of false beliefs in leadership before delays are bounded: agreement must tolerate them. */
const delusionRate = 0.5;

/** The leader oracle (Fig. 7) of one process. */
export function oracleOf(stage: PartsStage): LeaderOracle {
  const { parts, party } = stage;
  const oracle = new LeaderOracle(parts.site("leader", leaseMsOf(stage)));
  stage.leads(() => oracle.isLeader(party.look()));
  return oracle;
}

/** The leader oracle for a caller that now and then gives up and later returns. */
export async function lead(stage: PartsStage, oracle: LeaderOracle): Promise<void> {
  const { parts, party } = stage;
  const laidDown = () => {
    stage.log(`${party.writer} lays its leadership down`);
    stage.tell((observer) => observer.laidDown?.(party));
  };
  for (;;) await perhapsCancelled(stage, (caller) => parts.run(oracle.run(), caller?.signal), laidDown);
}

/**
 * Consensus (Fig. 8) of one process, which proposes `proposal`. Now and then it gives up and starts again
 * with another object.
 */
export async function agree(stage: PartsStage, oracle: LeaderOracle, proposal: string): Promise<void> {
  const { parts, party, random } = stage;
  const isLeader: LeaderOracle["isLeader"] = (now) =>
    oracle.isLeader(now) || (stage.isUnstable() && random.chance(delusionRate));
  stage.tell((observer) => observer.proposed?.(proposal));
  let value: string | undefined;
  while (value === undefined)
    value = await perhapsCancelled(stage, (caller) =>
      parts.run(parts.consensus("consensus", isLeader).propose(proposal), caller?.signal),
    );
  stage.counters.decisions += 1;
  stage.log(`${party.writer} decides ${value}`);
  const decision = value;
  stage.tell((observer) => observer.decided?.(party, decision));
}
