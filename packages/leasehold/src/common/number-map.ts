/** A greater capacity is released when the last value has gone. */
const roomKept = 1_024;

/**
 * A map by numbers, for short-lived values such as requests.
 *
 * A `Map` replaces its table whenever the old one is full of deleted entries, and the old one points to the
 * new one. When the garbage collector has promoted one of them, all later tables stay until it collects the
 * whole heap, and with them every value that was ever in the map. Here the tables contain only numbers.
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

  /** Whether it was present. */
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

  /** The oldest key, and its value. */
  first(): [key: number, value: Value] | undefined {
    for (const [key, place] of this.#places) return [key, this.#values[place] as Value];
    return undefined;
  }

  /** In insertion order; the caller may delete and add meanwhile. */
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
