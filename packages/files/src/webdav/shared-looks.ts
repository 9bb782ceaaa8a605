/** Lookups shared by concurrent callers: one lookup serves all that asked before it began. */
export class SharedLooks<T> {
  readonly #look: (key: string) => Promise<T>;
  readonly #underWay = new Map<string, Promise<T>>();
  readonly #next = new Map<string, Promise<T>>();

  constructor(look: (key: string) => Promise<T>) {
    this.#look = look;
  }

  /** The state at some moment during this call. */
  at(key: string): Promise<T> {
    const next = this.#next.get(key);
    if (next !== undefined) return next;
    const before = this.#underWay.get(key);
    if (before === undefined) return this.#begin(key);
    // A lookup that has already begun may have missed something that happened before this call.
    const begin = (): Promise<T> => {
      this.#next.delete(key);
      return this.#begin(key);
    };
    const following = before.then(begin, begin);
    this.#next.set(key, following);
    return following;
  }

  #begin(key: string): Promise<T> {
    const looking = this.#look(key).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, looking);
    return looking;
  }
}
