import type { Protocol } from "../../../delta/effects.js";
import { Consensus } from "../../../delta/paper/consensus.js";
import { LeaderOracle } from "../../../delta/paper/leader-oracle.js";
import { Nonces, Site } from "../../../delta/paper/site.js";
import { type Stage, leaseMsOf } from "./stage.js";

/** Before delays are bounded a process believes at times that it leads, whatever the oracle says: agreement must not mind. */
const delusionRate = 0.5;

/** The leader oracle (Fig. 7) of one process. */
export function oracleOf(stage: Stage): LeaderOracle {
  const { environment, party } = stage;
  const site = new Site({ environment, resource: "leader", leaseMs: leaseMsOf(stage), nonces: new Nonces() });
  const oracle = new LeaderOracle(site);
  stage.leads(() => oracle.isLeader(party.look()));
  return oracle;
}

/** Consensus (Fig. 8) of one process, which proposes its own name. */
export function* agree(stage: Stage, oracle: LeaderOracle): Protocol<void> {
  const { environment, party, plan, random } = stage;
  const isLeader: LeaderOracle["isLeader"] = (now) =>
    oracle.isLeader(now) || (stage.unstable && random.chance(delusionRate));
  const consensus = new Consensus({
    farm: environment.farm,
    name: "consensus/c",
    timeoutMs: plan.delayMs,
    writer: party.writer,
    isLeader,
    pollMs: plan.delayMs,
  });
  stage.tell((observer) => observer.proposed?.(party.writer));
  const value = yield* consensus.propose(party.writer);
  if (value === undefined) return;
  stage.counters.decisions += 1;
  stage.say(`${party.writer} decides ${value}`);
  stage.tell((observer) => observer.decided?.(party, value));
}
