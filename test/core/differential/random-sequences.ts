import type { Action, Sequence } from "./action.js";
import { Choices } from "./choices.js";
import { knownDifference } from "./known-differences.js";
import { RandomAuthRequests } from "./random-auth-requests.js";
import {
  RandomCluster,
  RandomElections,
  RandomLocks,
  RandomMaintenance,
  type RandomOthers,
} from "./random-others.js";
import { RandomRequests } from "./random-requests.js";

/** This many requests reveal most mistakes. Now and then there are more, which meet more history. */
const lengthUsual = 14;
const lengthMost = 60;

/**
 * Sequences of requests to all services of etcd's API. Requests whose answers are known to differ are left
 * out.
 */
export class RandomSequences {
  readonly #choices: Choices;
  /** How many requests were left out, by known difference. */
  readonly leftOut: Map<string, number>;

  constructor(seed: number, leftOut = new Map<string, number>()) {
    this.#choices = new Choices(seed);
    this.leftOut = leftOut;
  }

  next(withRights: boolean): Sequence {
    const actions: Action[] = [];
    const add = (action: Action) => {
      const known = knownDifference([...actions, action]);
      if (known === undefined) actions.push(action);
      else this.leftOut.set(known, (this.leftOut.get(known) ?? 0) + 1);
    };
    const length = 3 + this.#choices.below(this.#choices.chance(0.05) ? lengthMost : lengthUsual);
    const source = withRights ? new RandomAuthRequests(this.#choices) : new Mixture(this.#choices);
    for (const action of source.beginning()) add(action);
    const end = actions.length + length;
    while (actions.length < end) add(source.next(actions.length));
    return { withRights, actions };
  }
}

/** Some sequences concentrate on one service. */
class Mixture {
  readonly #choices: Choices;
  readonly #requests: RandomRequests;
  readonly #others: RandomOthers;
  readonly #aside: number;
  readonly #watches: number;
  #runsOut: boolean;

  constructor(choices: Choices) {
    this.#choices = choices;
    this.#requests = new RandomRequests(choices);
    const Others = choices.pick([RandomMaintenance, RandomCluster, RandomLocks, RandomElections]);
    this.#others = new Others(choices);
    this.#aside = choices.pick([0, 0, 0.2, 0.7, 0.7]);
    this.#watches = this.#requests.hasLarge ? 0.3 : choices.pick([0, 0.1, 0.25]);
    // It costs a second or two.
    this.#runsOut = choices.chance(0.04);
  }

  *beginning(): Generator<Action> {
    if (this.#aside > 0) yield* this.#others.beginning?.() ?? [];
    if (this.#aside < 0.5 && this.#choices.chance(0.7)) yield* this.#requests.beginning();
  }

  next(number: number): Action {
    if (this.#choices.chance(this.#aside)) return this.#others.next(number);
    if (this.#choices.chance(this.#watches)) return this.#ofWatch();
    if (this.#runsOut && this.#choices.chance(0.2)) {
      this.#runsOut = false;
      return this.#requests.runOut();
    }
    return this.#requests.next();
  }

  #ofWatch(): Action {
    return this.#choices.weighted<Action>([
      [1, () => ({ service: "Watch", method: "progress", request: {} })],
      [
        1,
        () => ({ service: "Watch", method: "cancel", request: { watchId: `${1 + this.#choices.below(5)}` } }),
      ],
      [8, () => this.#requests.watch()],
    ]);
  }
}
