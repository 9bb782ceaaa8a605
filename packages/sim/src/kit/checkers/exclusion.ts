/** Holds on one ground. */
export interface HoldRules<Hold> {
  /** Whether its holder relies on it now, by its own clocks. */
  isHeld(hold: Hold): boolean;
  /** A description of the holder. */
  nameOf(hold: Hold): string;
  /** Default: false. Two shared holds do not exclude each other. */
  isShared?(hold: Hold): boolean;
}

/** Exclusion: no two hold one resource at one instant, each by its own clocks, unless both share it. */
export class Exclusion<Hold> {
  readonly #rules: HoldRules<Hold>;
  readonly #report: (text: string) => void;

  constructor(rules: HoldRules<Hold>, report: (text: string) => void) {
    this.#rules = rules;
    this.#report = report;
  }

  /** @param holds all holds of the resource; some may have run out */
  look(resource: string, holds: Iterable<Hold>): void {
    const { isHeld, nameOf, isShared } = this.#rules;
    let first: Hold | undefined;
    for (const hold of holds) {
      if (!isHeld(hold)) continue;
      // Comparing with the first is enough: a hold that shares with it shares with all that do.
      if (first === undefined) first = hold;
      else if (isShared?.(first) !== true || !isShared(hold)) {
        this.#report(`${nameOf(first)} and ${nameOf(hold)} both hold ${resource}`);
        return;
      }
    }
  }
}
