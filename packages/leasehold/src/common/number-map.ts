/** Room for more values is given back when the last has gone. */
const roomKept = 1_024;

/**
 * A map by numbers, for values that come and go all the time, like requests.
 *
 * A `Map` makes itself a new table whenever the old one is full of what was deleted, and the old one points
 * to the new one. When one of them has become old to the collector of garbage, all that follow stay until
 * that looks at the whole heap, and with them every value that was ever in the map. Here tables have numbers.
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

  /** A key that is there stays where it is in the order. */
  set(key: number, value: Value): void {
    let place = this.#places.get(key);
    if (place === undefined) {
      place = this.#free.pop() ?? this.#values.length;
      this.#places.set(key, place);
    }
    this.#values[place] = value;
  }

  /** Whether it was there. */
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

  /** The key that came first, and its value. */
  first(): [key: number, value: Value] | undefined {
    for (const [key, place] of this.#places) return [key, this.#values[place] as Value];
    return undefined;
  }

  /** In the order in which keys came; who reads may delete and add. */
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
