import { faults } from "#delta-faults";
import { lookAtClocks } from "../effects.js";
import { RankedRegister } from "./ranked-register.js";
/**
 * Uniform consensus (Fig. 8): while undecided and leader, pick a higher rank, rr-read, adopt what was seen or one's own
 * proposal, rr-write; on commit, decide. No two processes ever decide differently, whatever the delays; with one stable leader all
 * decide.
 */
export class Consensus {
    #options;
    #register;
    /** Where the decision is published for those who never lead: only ever written with the decided value. */
    #decision;
    /** The writer of its ranks. */
    #ranker;
    #round = 0n;
    constructor(options) {
        this.#options = options;
        this.#ranker = faults.rankOfProcess ? options.writer : `${options.writer}/${options.nonces.next()}`;
        this.#register = new RankedRegister(options);
        this.#decision = new RankedRegister({ ...options, name: `${options.name}/decision` });
    }
    /** The decision; `undefined` when it was cancelled before there was one. */
    *propose(proposal) {
        for (;;) {
            const { now, cancelled } = yield lookAtClocks;
            if (cancelled)
                return undefined;
            const decided = this.#options.isLeader(now)
                ? yield* this.#lead(proposal)
                : yield* this.#decision.peek();
            if (decided !== undefined)
                return decided;
            yield { kind: "delay", delayMs: this.#options.pollMs };
        }
    }
    *#lead(proposal) {
        this.#round += 1n;
        const rank = { round: this.#round, writer: this.#ranker };
        const seen = yield* this.#register.read(rank);
        if (seen.kind === "aborted") {
            if (seen.greatest.round > this.#round)
                this.#round = seen.greatest.round;
            return undefined;
        }
        const value = seen.value ?? proposal;
        if ((yield* this.#register.write(rank, value)) === "abort")
            return undefined;
        yield* this.#decision.write(rank, value);
        return value;
    }
}
