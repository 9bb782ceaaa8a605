import { stretched } from "leasehold/inner/common/clock-rates.js";
import type { StorageReport, StorageObserver, WorldView } from "../stage/observer.js";
import type { SimParty } from "../../kit/party.js";

/** One process must have become the leader within this many waits after the last crash. */
const waitsMax = 4;

/**
 * The oracle (Fig. 7, Lemma 10): some time after delays have become bounded there is a leader, and it stays
 * the leader for ever, unless it crashes.
 */
export class UniqueLeader implements StorageObserver {
  readonly #view: WorldView;
  readonly #report: StorageReport;
  #leader: SimParty | undefined;
  /** The process that was asked to stop: it may lead until its pending renewal ends. */
  #stopping: SimParty | undefined;
  #sinceMs = 0;

  constructor(view: WorldView, report: StorageReport) {
    this.#view = view;
    this.#report = report;
  }

  disturbed(party: SimParty | undefined): void {
    this.#sinceMs = this.#view.nowMs;
    if (party === this.#leader && party?.isAlive === false) this.#leader = undefined;
  }

  laidDown(party: SimParty): void {
    this.#sinceMs = this.#view.nowMs;
    this.#stopping = party;
    if (party === this.#leader) this.#leader = undefined;
  }

  looked(leaders: readonly SimParty[]): void {
    const { nowMs, settledMs, waitMs, plan, recovering } = this.#view;
    if ((plan.ground !== "oracle" && plan.ground !== "consensus") || nowMs < settledMs) return;
    // With one store missing and another that holds a loser's record, a majority may be out of reach for a
    // while.
    if (recovering) [this.#leader, this.#sinceMs] = [undefined, nowMs];
    const [leader] = leaders;
    const becauseMs = nowMs - Math.max(this.#sinceMs, settledMs);
    if (leader === undefined && this.#leader !== undefined)
      this.#report("leader", `${this.#leader.writer} leads no more`);
    else if (leader === undefined && becauseMs > stretched(waitsMax * waitMs, plan.clockRateError))
      this.#report("leader", `nobody leads after ${Math.round(becauseMs)} ms`);
    else if (leader !== undefined && this.#leader !== undefined && leader !== this.#leader)
      this.#report("leader", `${leader.writer} leads in place of ${this.#leader.writer}`);
    if (this.#stopping !== undefined && !leaders.includes(this.#stopping)) this.#stopping = undefined;
    this.#leader = leader === this.#stopping ? undefined : (leader ?? this.#leader);
  }
}
