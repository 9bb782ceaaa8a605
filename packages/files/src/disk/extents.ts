/** A run of allocation units of a data file. */
export interface Extent {
  readonly start: number;
  readonly units: number;
}

/** The free units of a data file. They are reused before the file grows. */
export class Extents {
  /** In order. No two are adjacent, and none ends at the end of the file. */
  readonly #free: Extent[] = [];
  #end = 0;

  /** The end of the last used unit. */
  get end(): number {
    return this.#end;
  }

  static around(used: Iterable<Extent>): Extents {
    const extents = new Extents();
    for (const { start, units } of [...used].sort((one, other) => one.start - other.start)) {
      // An empty block has no extent.
      if (units === 0) continue;
      if (start > extents.#end) extents.#free.push({ start: extents.#end, units: start - extents.#end });
      extents.#end = start + units;
    }
    return extents;
  }

  /** The first free extent that is long enough. */
  take(units: number): Extent {
    const at = this.#free.findIndex((each) => each.units >= units);
    const found = this.#free[at];
    if (found === undefined) {
      const start = this.#end;
      this.#end += units;
      return { start, units };
    }
    if (found.units === units) this.#free.splice(at, 1);
    else this.#free[at] = { start: found.start + units, units: found.units - units };
    return { start: found.start, units };
  }

  give({ start, units }: Extent): void {
    if (units === 0) return;
    const next = this.#free.findIndex((each) => each.start > start);
    const at = next === -1 ? this.#free.length : next;
    const before = this.#free[at - 1];
    const after = this.#free[at];
    const touchesBefore = before !== undefined && before.start + before.units === start;
    const touchesAfter = after !== undefined && start + units === after.start;
    const from = touchesBefore ? before.start : start;
    const to = touchesAfter ? after.start + after.units : start + units;
    const whole = { start: from, units: to - from };
    this.#free.splice(at - (touchesBefore ? 1 : 0), Number(touchesBefore) + Number(touchesAfter), whole);
    if (to !== this.#end) return;
    this.#free.pop();
    this.#end = from;
  }
}
