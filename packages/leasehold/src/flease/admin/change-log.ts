/**
 * The newest changes of all resources, shared by all watchers. Each follower has its own position in the log,
 * so a change costs the same for one follower as for a thousand, and an idle follower costs nothing. A
 * resource that changed again is reported only at the later position.
 */
export class ChangeLog {
  readonly #changesMax: number;
  readonly #ring: string[] = [];
  /** The position of each resource's newest change. */
  readonly #newest = new Map<string, number>();
  #end = 0;

  /** Keeps `changesMax` changes. */
  constructor(changesMax: number) {
    this.#changesMax = changesMax;
  }

  /** The position of the next change. */
  get end(): number {
    return this.#end;
  }

  /** Changes before this position have been dropped. */
  get begin(): number {
    return Math.max(0, this.#end - this.#changesMax);
  }

  add(resource: string): void {
    const at = this.#end % this.#changesMax;
    const forgotten = this.#ring[at];
    if (forgotten !== undefined && this.#newest.get(forgotten) === this.#end - this.#changesMax)
      this.#newest.delete(forgotten);
    this.#ring[at] = resource;
    this.#newest.set(resource, this.#end);
    this.#end += 1;
  }

  /** The resource that changed at this position; `undefined` when it has changed again since. */
  at(place: number): string | undefined {
    const resource = this.#ring[place % this.#changesMax]!;
    return this.#newest.get(resource) === place ? resource : undefined;
  }
}
