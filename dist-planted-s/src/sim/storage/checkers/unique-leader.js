import { stretched } from "../../../lease/clock-rates.js";
/** In this many waits after the last crash one process must have become leader. */
const waitsMax = 4;
/**
 * The oracle (Fig. 7, Lemma 10): once delays are bounded there are never two leaders, after a while there is one, and it is the
 * same for ever, unless it crashes.
 */
export class UniqueLeader {
    #view;
    #report;
    #leader;
    #sinceMs = 0;
    constructor(view, report) {
        this.#view = view;
        this.#report = report;
    }
    disturbed(party) {
        this.#sinceMs = this.#view.nowMs;
        if (party === this.#leader && party?.isAlive === false)
            this.#leader = undefined;
    }
    laidDown(party) {
        this.#sinceMs = this.#view.nowMs;
        if (party === this.#leader)
            this.#leader = undefined;
    }
    looked(leaders) {
        const { nowMs, settledMs, waitMs, plan, recovering } = this.#view;
        if ((plan.ground !== "oracle" && plan.ground !== "consensus") || nowMs < settledMs)
            return;
        if (leaders.length > 1)
            this.#report("exclusion", `${leaders.map(({ writer }) => writer).join(" and ")} both lead`);
        // With a store less, and another that holds a loser's record, a majority may be out of reach for a while.
        if (recovering)
            [this.#leader, this.#sinceMs] = [undefined, nowMs];
        const [leader] = leaders;
        const becauseMs = nowMs - Math.max(this.#sinceMs, settledMs);
        if (leader === undefined && this.#leader !== undefined)
            this.#report("leader", `${this.#leader.writer} leads no more`);
        else if (leader === undefined && becauseMs > stretched(waitsMax * waitMs, plan.clockRateError))
            this.#report("leader", `nobody leads after ${Math.round(becauseMs)} ms`);
        else if (leader !== undefined && this.#leader !== undefined && leader !== this.#leader)
            this.#report("leader", `${leader.writer} leads in place of ${this.#leader.writer}`);
        this.#leader = leader ?? this.#leader;
    }
}
