import type { Protocol } from "../../../src/delta/effects.js";
import { Consensus } from "../../../src/delta/paper/consensus.js";
import { LeaderOracle } from "../../../src/delta/paper/leader-oracle.js";
import { Nonces, Site } from "../../../src/delta/paper/site.js";
import { perhapsCancelled } from "./cancelled.js";
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

/** The leader oracle for a caller that gives up now and then, and comes again. */
export function* lead(stage: Stage, oracle: LeaderOracle): Protocol<void> {
  const laidDown = () => {
    stage.say(`${stage.party.writer} lays its leadership down`);
    stage.tell((observer) => observer.laidDown?.(stage.party));
  };
  for (;;) yield* perhapsCancelled(stage, oracle.run(), laidDown);
}

/** Consensus (Fig. 8) of one process, which proposes `proposal`, and gives up now and then and begins again with another object. */
export function* agree(stage: Stage, oracle: LeaderOracle, proposal: string, nonces: Nonces): Protocol<void> {
  const { environment, party, plan, random } = stage;
  const isLeader: LeaderOracle["isLeader"] = (now) =>
    oracle.isLeader(now) || (stage.unstable && random.chance(delusionRate));
  stage.tell((observer) => observer.proposed?.(proposal));
  let value: string | undefined;
  while (value === undefined) {
    const consensus = new Consensus({
      farm: environment.farm,
      name: "consensus/c",
      timeoutMs: plan.delayMs,
      writer: party.writer,
      nonces,
      isLeader,
      pollMs: plan.delayMs,
    });
    value = yield* perhapsCancelled(stage, consensus.propose(proposal));
  }
  stage.counters.decisions += 1;
  stage.say(`${party.writer} decides ${value}`);
  const decision = value;
  stage.tell((observer) => observer.decided?.(party, decision));
}
