/** An item of a {@link Deadlines} heap. */
export interface DeadlineItem {
  /** The item's number while it is in the heap, -1 otherwise. Managed by the heap; initially -1. */
  heapIndex: number;
}

/** Children per entry, which are adjacent in memory. */
const arity = 4;

/** Initial capacity; it doubles. */
const sizeFirst = 16;

/** A capacity above this (about 100 KB) is released when the heap becomes empty. */
const sizeKept = 4_096;

/**
 * Deadlines in due order: a heap whose items know their place, so that scheduling, rescheduling and
 * cancelling cost O(log n) and allocate nothing.
 *
 * The compared values are kept in arrays of numbers: there may be half a million items, and when comparisons
 * read the items themselves, that took a third of the processor time of a participant that renewed that many
 * leases.
 */
export class Deadlines<T extends DeadlineItem> {
  #size = 0;
  #sequence = 0;
  /**
   * The heap: each entry's due time, its sequence number, and its item's number. The sequence number orders
   * items that are due at the same moment, so that runs are repeatable.
   */
  #due = new Float64Array(0);
  #order = new Float64Array(0);
  #numbers = new Int32Array(0);
  /** Indexed by item number: the item's place in the heap or, for a free number, the next free number. */
  #places = new Int32Array(0);
  /** Items, indexed by number. */
  #items: (T | undefined)[] = [];
  #freeNumber = -1;

  get size(): number {
    return this.#size;
  }

  /** Adds the item, or moves it when it is already present. */
  schedule(item: T, dueMs: number): void {
    if (Number.isNaN(dueMs)) throw new RangeError("a deadline must be a number, not NaN");
    const order = this.#sequence++;
    if (item.heapIndex === -1) {
      item.heapIndex = this.#takeNumber(item);
      this.#up(this.#size++, dueMs, order, item.heapIndex);
    } else {
      this.#move(this.#places[item.heapIndex]!, dueMs, order, item.heapIndex);
    }
  }

  /** The due time of an item in the heap, on the clock of the heap's owner. */
  dueMs(item: T): number {
    return this.#due[this.#places[item.heapIndex]!]!;
  }

  /** All items, in the order in which they were scheduled. */
  inOrder(): T[] {
    const present = this.#items.filter((item) => item !== undefined);
    const order = ({ heapIndex }: T) => this.#order[this.#places[heapIndex]!]!;
    return present.sort((left, right) => order(left) - order(right));
  }

  /** Removes the item. Returns whether it was present. */
  cancel(item: T): boolean {
    const number = item.heapIndex;
    if (number === -1) return false;
    const place = this.#places[number]!;
    item.heapIndex = -1;
    this.#giveNumber(number);
    const last = (this.#size -= 1);
    if (place !== last) this.#move(place, this.#due[last]!, this.#order[last]!, this.#numbers[last]!);
    if (last === 0) this.#clear();
    return true;
  }

  /** The due time of the first item; `Infinity` if the heap is empty. */
  nextDueMs(): number {
    return this.#size === 0 ? Infinity : this.#due[0]!;
  }

  /**
   * Removes and returns the first item if it is due by `nowMs`. Items due at the same moment come in
   * scheduling order.
   */
  popDue(nowMs: number): T | undefined {
    if (this.#size === 0 || this.#due[0]! > nowMs) return undefined;
    const first = this.#items[this.#numbers[0]!]!;
    this.cancel(first);
    return first;
  }

  #takeNumber(item: T): number {
    if (this.#freeNumber === -1) this.#grow();
    const number = this.#freeNumber;
    this.#freeNumber = this.#places[number]!;
    this.#items[number] = item;
    return number;
  }

  #giveNumber(number: number): void {
    this.#items[number] = undefined;
    this.#places[number] = this.#freeNumber;
    this.#freeNumber = number;
  }

  /** Called when all numbers are taken. */
  #grow(): void {
    const before = this.#items.length;
    const room = Math.max(sizeFirst, 2 * before);
    this.#due = copied(this.#due, new Float64Array(room));
    this.#order = copied(this.#order, new Float64Array(room));
    this.#numbers = copied(this.#numbers, new Int32Array(room));
    this.#places = copied(this.#places, new Int32Array(room));
    for (let number = before; number < room; number += 1) {
      this.#items.push(undefined);
      this.#places[number] = number + 1 < room ? number + 1 : -1;
    }
    this.#freeNumber = before;
  }

  /** Releases the memory of a large heap. */
  #clear(): void {
    if (this.#items.length <= sizeKept) return;
    this.#due = this.#order = new Float64Array(0);
    this.#numbers = this.#places = new Int32Array(0);
    this.#items = [];
    this.#freeNumber = -1;
  }

  /** Replaces a removed entry with another one. */
  #move(place: number, due: number, order: number, number: number): void {
    if (this.#up(place, due, order, number) === place) this.#down(place, due, order, number);
  }

  /** Puts the entry at this free place or above it; returns its place. */
  #up(from: number, due: number, order: number, number: number): number {
    const dues = this.#due;
    const orders = this.#order;
    const numbers = this.#numbers;
    const places = this.#places;
    let place = from;
    while (place > 0) {
      const parent = Math.floor((place - 1) / arity);
      const other = dues[parent]!;
      if (due > other || (due === other && order > orders[parent]!)) break;
      dues[place] = other;
      orders[place] = orders[parent]!;
      places[(numbers[place] = numbers[parent]!)] = place;
      place = parent;
    }
    dues[place] = due;
    orders[place] = order;
    places[(numbers[place] = number)] = place;
    return place;
  }

  /** Puts the entry at this free place or below it. */
  #down(from: number, due: number, order: number, number: number): void {
    const dues = this.#due;
    const orders = this.#order;
    const numbers = this.#numbers;
    const places = this.#places;
    const size = this.#size;
    let place = from;
    for (;;) {
      const first = arity * place + 1;
      if (first >= size) break;
      const end = Math.min(first + arity, size);
      let least = first;
      let leastDue = dues[first]!;
      for (let child = first + 1; child < end; child += 1) {
        const childDue = dues[child]!;
        if (childDue > leastDue || (childDue === leastDue && orders[child]! > orders[least]!)) continue;
        least = child;
        leastDue = childDue;
      }
      if (due < leastDue || (due === leastDue && order < orders[least]!)) break;
      dues[place] = leastDue;
      orders[place] = orders[least]!;
      places[(numbers[place] = numbers[least]!)] = place;
      place = least;
    }
    dues[place] = due;
    orders[place] = order;
    places[(numbers[place] = number)] = place;
  }
}

function copied<A extends Float64Array | Int32Array>(from: A, into: A): A {
  into.set(from);
  return into;
}
