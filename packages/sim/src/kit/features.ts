/** Features that can be removed from a run, to show a failure with as few as possible. */
export class Features<Plan, Name extends string> {
  readonly names: readonly Name[];
  readonly #removals: Readonly<Record<string, (plan: Plan) => Plan>>;

  /** @param removals by the feature's name: the plan without it */
  constructor(removals: Readonly<Record<Name, (plan: Plan) => Plan>>) {
    this.#removals = removals;
    this.names = Object.keys(removals) as Name[];
  }

  /** The plan without some of its features. */
  without(plan: Plan, names: readonly string[] = []): Plan {
    return names.reduce((rest, name) => this.#removals[name]!(rest), plan);
  }
}
