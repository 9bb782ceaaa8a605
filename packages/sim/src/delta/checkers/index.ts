import type { StorageReport, StorageObserver, WorldView } from "../stage/observer.js";
import { Agreement } from "./agreement.js";
import { Decision } from "./decision.js";
import { claimExclusion, leaderExclusion } from "./exclusion.js";
import { Guard } from "./guard.js";
import { Meddling } from "./meddling.js";
import { NoFlicker } from "./no-flicker.js";
import { Readmission } from "./readmission.js";
import { Progress } from "./progress.js";
import { Regularity } from "./regularity.js";
import { Renewal } from "./renewal.js";
import { claimTokens } from "./tokens.js";
import { UniqueLeader } from "./unique-leader.js";

/**
 * All checkers of shared storage. Each checker says which property (1 to 6) or lemma of the paper it checks.
 */
export function allStorageCheckers(view: WorldView, report: StorageReport): StorageObserver[] {
  return [
    claimExclusion(view, report),
    leaderExclusion(view, report),
    new Renewal(view, report),
    new Progress(view, report),
    new UniqueLeader(view, report),
    new Agreement(report),
    new Decision(view, report),
    claimTokens(view, report),
    new Guard(report),
    new Regularity(report),
    new NoFlicker(report),
    new Readmission(view, report),
    new Meddling(report),
  ];
}
