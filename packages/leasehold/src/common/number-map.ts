/** A capacity above this is released when the map becomes empty. */
const roomKept = 1_024;

/**
 * A map keyed by numbers, for short-lived values such as requests.
 *
 * A `Map` replaces its table whenever it is full of deleted entries, and the old table points to the new one.
 * Once the garbage collector has promoted one table, all later tables, and every value that was ever in them,
 * stay in memory until it collects the whole heap. The tables of this map contain only numbers.
 */
export class NumberMap<Value> {
  readonly #places = new Map<number, number>();
  #values: (Value | undefined)[] = [];
  #free: number[] = [];

  get size(): number {
    return this.#places.size;
  }

  has(key: number): boolean {
    return this.#places.has(key);
  }

  get(key: number): Value | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.#values[place];
  }

  /** A present key keeps its position in the order. */
  set(key: number, value: Value): void {
    let place = this.#places.get(key);
    if (place === undefined) {
      place = this.#free.pop() ?? this.#values.length;
      this.#places.set(key, place);
    }
    this.#values[place] = value;
  }

  /** Returns whether the key was present. */
  delete(key: number): boolean {
    const place = this.#places.get(key);
    if (place === undefined) return false;
    this.#places.delete(key);
    this.#values[place] = undefined;
    this.#free.push(place);
    if (this.#places.size === 0 && this.#values.length > roomKept) this.clear();
    return true;
  }

  clear(): void {
    this.#places.clear();
    this.#values = [];
    this.#free = [];
  }

  /** The oldest key and its value. */
  first(): [key: number, value: Value] | undefined {
    for (const [key, place] of this.#places) return [key, this.#values[place] as Value];
    return undefined;
  }

  /** In insertion order. The caller may add and delete during the iteration. */
  *entries(): Generator<[key: number, value: Value]> {
    for (const [key, place] of this.#places) yield [key, this.#values[place] as Value];
  }

  keys(): Iterable<number> {
    return this.#places.keys();
  }

  *values(): Generator<Value> {
    for (const place of this.#places.values()) yield this.#values[place] as Value;
  }
}
