import type { BothClocks } from "../../common/both-clocks.js";
import type { Protocol } from "../effects.js";
import { lookAtClocks } from "../effects.js";
import { RankedRegister } from "./ranked-register.js";
import type { RankedRegisterOptions } from "./ranked-register.js";
import type { Nonces } from "./site.js";

export interface ConsensusOptions extends RankedRegisterOptions {
  /** Unique to each process and each of its incarnations. */
  readonly writer: string;
  /** The process's nonces, which distinguish its consensus objects: no two may ever choose the same rank. */
  readonly nonces: Nonces;
  /**
   * The leader oracle's answer, requested in each round. Safety does not depend on it: several processes
   * may believe that they lead.
   */
  readonly isLeader: (now: BothClocks) => boolean;
  /** The interval at which the oracle is asked, and at which a follower reads the decision, ms. */
  readonly pollMs: number;
}

/**
 * Uniform consensus (Fig. 8): while undecided and leader, pick a higher rank, rr-read, adopt the value read
 * or one's own proposal, rr-write; on commit, decide. No two processes ever decide differently, whatever the
 * delays; with one stable leader all decide.
 */
export class Consensus {
  readonly #options: ConsensusOptions;
  readonly #register: RankedRegister;
  /** The published decision, for processes that never lead. Only the decided value is ever written to it. */
  readonly #decision: RankedRegister;
  /** The writer of its ranks. */
  readonly #ranker: string;
  #round = 0n;

  constructor(options: ConsensusOptions) {
    this.#options = options;
    this.#ranker = `${options.writer}/${options.nonces.next()}`;
    this.#register = new RankedRegister(options);
    this.#decision = new RankedRegister({ ...options, name: `${options.name}/decision` });
  }

  /** The decision; `undefined` when the call was cancelled before there was one. */
  *propose(proposal: string): Protocol<string | undefined> {
    for (;;) {
      const { now, cancelled } = yield lookAtClocks;
      if (cancelled) return undefined;
      const decided = this.#options.isLeader(now)
        ? yield* this.#lead(proposal)
        : yield* this.#decision.peek();
      if (decided !== undefined) return decided;
      yield { kind: "delay", delayMs: this.#options.pollMs };
    }
  }

  *#lead(proposal: string): Protocol<string | undefined> {
    this.#round += 1n;
    const rank = { round: this.#round, writer: this.#ranker };
    const seen = yield* this.#register.read(rank);
    if (seen.kind === "aborted") {
      if (seen.greatest.round > this.#round) this.#round = seen.greatest.round;
      return undefined;
    }
    const value = seen.value ?? proposal;
    if ((yield* this.#register.write(rank, value)) === "abort") return undefined;
    yield* this.#decision.write(rank, value);
    return value;
  }
}
