import { majorityOf } from "leasehold/common";
import type { MemberId } from "./types.js";

/** The votes for one candidate or pre-candidate in one term. A voter's repeated answers change nothing. */
export class Election {
  readonly #votes = new Map<MemberId, boolean>();

  count(voter: MemberId, granted: boolean): void {
    if (!this.#votes.has(voter)) this.#votes.set(voter, granted);
  }

  outcome(voters: readonly MemberId[]): "won" | "lost" | "open" {
    const majority = majorityOf(voters.length);
    const granted = voters.filter((id) => this.#votes.get(id) === true).length;
    if (granted >= majority) return "won";
    const denied = voters.filter((id) => this.#votes.get(id) === false).length;
    return denied > voters.length - majority ? "lost" : "open";
  }
}
