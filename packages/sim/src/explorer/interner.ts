import { getOrInsert } from "leasehold/inner/common/maps.js";

/**
 * Gives each distinct value a small number, and equal values the same one, so that a state of the world is a
 * handful of numbers.
 */
export class Interner<T> {
  readonly #items: T[] = [];
  readonly #byKey = new Map<string, number>();
  readonly #keyOf: (item: T) => string;

  constructor(keyOf: (item: T) => string) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#items.length;
  }

  idOf(item: T): number {
    const key = this.#keyOf(item);
    return getOrInsert(this.#byKey, key, () => this.#items.push(item) - 1);
  }

  at(id: number): T {
    return this.#items[id]!;
  }
}

/** Members of sets are below this, and so are the numbers of sets times it below 2^53. */
const memberMax = 2 ** 22;

/** Sets of small numbers, each set with a number of its own. Number 0 is the empty set. */
export class SetInterner {
  readonly #sets = new Interner<readonly number[]>((set) => set.join(" "));
  readonly #grown = new Map<number, number>();

  constructor() {
    this.#sets.idOf([]);
  }

  members(id: number): readonly number[] {
    return this.#sets.at(id);
  }

  idOf(members: readonly number[]): number {
    return this.#sets.idOf([...new Set(members)].sort((left, right) => left - right));
  }

  /** The set with one member more. */
  with(id: number, member: number): number {
    if (member >= memberMax) throw new Error("assertion failed: too many different messages");
    const key = id * memberMax + member;
    let grown = this.#grown.get(key);
    if (grown === undefined) {
      const members = this.#sets.at(id);
      grown = members.includes(member) ? id : this.idOf([...members, member]);
      this.#grown.set(key, grown);
    }
    return grown;
  }
}
