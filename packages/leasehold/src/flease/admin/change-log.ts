/**
 * The newest changes of all resources, shared by all watchers: each follower has its place in it, so that a
 * change costs the same for one follower or a thousand, and an idle follower costs nothing. A resource that
 * changed again is reported only at the later place.
 */
export class ChangeLog {
  readonly #changesMax: number;
  readonly #ring: string[] = [];
  /** The place of the newest change of each resource. */
  readonly #newest = new Map<string, number>();
  #end = 0;

  /** Keeps `changesMax` changes. */
  constructor(changesMax: number) {
    this.#changesMax = changesMax;
  }

  /** The place of the next change. */
  get end(): number {
    return this.#end;
  }

  /** Changes before this place are dropped. */
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

  /** The resource that changed at this place; `undefined` when it has changed again since. */
  at(place: number): string | undefined {
    const resource = this.#ring[place % this.#changesMax]!;
    return this.#newest.get(resource) === place ? resource : undefined;
  }
}
