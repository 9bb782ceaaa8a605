import type { ClockAssumptions } from "../../kit/clocks.js";
import type { Observer, FleaseReport, WorldView } from "../stage/observer.js";
import type { Invariant } from "../stage/invariants.js";
import { Ballots } from "./ballots.js";
import { BoundedLeases } from "./bounded-leases.js";
import { ClockBounds } from "./clock-bounds.js";
import { Continuity } from "./continuity.js";
import { Crowding } from "./crowding.js";
import { Guard } from "./guard.js";
import { HeldForNobody } from "./held-for-nobody.js";
import { Leaders } from "./leaders.js";
import { ProgramContinuity } from "./program-continuity.js";
import { ProgramExclusion } from "./program-exclusion.js";
import { NodeExclusion } from "./node-exclusion.js";
import { Promises } from "./promises.js";
import { QuorumBacked } from "./quorum-backed.js";
import { Recovery } from "./recovery.js";
import { ReleaseFinality } from "./release-finality.js";
import { Silence } from "./silence.js";
import { nodeTokens, programTokens } from "./tokens.js";
import { ViewChanges } from "./views.js";
import { Turns } from "./turns.js";
import { Waiters } from "./waiters.js";

/** All checkers of section 5. */
export function allCheckers(view: WorldView, report: FleaseReport): Observer[] {
  return [
    new NodeExclusion(view, report),
    nodeTokens(report),
    new QuorumBacked(view, report),
    new Promises(report),
    new Guard(view, report),
    new Ballots(view, report),
    new BoundedLeases(view, report),
    new Recovery(view, report),
    new ReleaseFinality(report),
    new ClockBounds(view, report),
    new Continuity(view, report),
    new Silence(view, report),
    new ProgramExclusion(report),
    new Turns(report),
    new ProgramContinuity(report),
    programTokens(report),
    new Leaders(report),
    new HeldForNobody(view, report),
    new Waiters(view, report),
    new Crowding(report),
    new ViewChanges(view, report),
  ];
}

/**
 * Whether an invariant must hold in a run (7.1). This depends on which assumptions about clocks hold and
 * which nets are on.
 */
export function isAsserted(invariant: Invariant, clocks: ClockAssumptions): boolean {
  switch (invariant) {
    case "I1":
    case "I4":
    case "I11":
    case "I16":
      return clocks.wall || clocks.rate;
    case "I2":
    case "I3":
      return clocks.wall;
    default:
      return true;
  }
}
