/**
 * What lies in a {@link Deadlines} heap. Its two bookkeeping fields belong to the heap; start with -1 and 0.
 */
export interface DeadlineItem {
  /**
   * When it is due, on whatever clock the owner of the heap uses. Written by the heap; never change it
   * directly.
   */
  dueMs: number;
  /** Position in the heap, -1 when absent. */
  heapIndex: number;
  /**
   * Order of scheduling: decides among items that are due at the same moment, so that runs can be repeated.
   */
  heapSequence: number;
}

/**
 * Deadlines in the order in which they fall due: a binary heap whose items know their place, so that
 * scheduling, re-scheduling and cancelling cost O(log n) and allocate nothing.
 */
export class Deadlines<T extends DeadlineItem> {
  readonly #heap: T[] = [];
  #sequence = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** Adds the item, or moves it when it is already present. */
  schedule(item: T, dueMs: number): void {
    if (Number.isNaN(dueMs)) throw new RangeError("a deadline must be a number, not NaN");
    item.dueMs = dueMs;
    item.heapSequence = this.#sequence++;
    if (item.heapIndex === -1) {
      item.heapIndex = this.#heap.length;
      this.#heap.push(item);
      this.#siftUp(item);
    } else {
      this.#siftUp(item);
      this.#siftDown(item);
    }
  }

  /** Takes the item out. True when it was present. */
  cancel(item: T): boolean {
    const index = item.heapIndex;
    if (index === -1) return false;
    const last = this.#heap.pop()!;
    item.heapIndex = -1;
    if (last !== item) {
      this.#heap[index] = last;
      last.heapIndex = index;
      this.#siftUp(last);
      this.#siftDown(last);
    }
    return true;
  }

  /** When the first item is due; `Infinity` when there is none. */
  nextDueMs(): number {
    return this.#heap[0]?.dueMs ?? Infinity;
  }

  /**
   * Takes out and returns the first item if it is due by `nowMs`. Items due at the same moment come in
   * scheduling order.
   */
  popDue(nowMs: number): T | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.dueMs > nowMs) return undefined;
    this.cancel(first);
    return first;
  }

  #siftUp(item: T): void {
    const heap = this.#heap;
    let index = item.heapIndex;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = heap[parentIndex]!;
      if (!before(item, parent)) break;
      heap[index] = parent;
      parent.heapIndex = index;
      index = parentIndex;
    }
    heap[index] = item;
    item.heapIndex = index;
  }

  #siftDown(item: T): void {
    const heap = this.#heap;
    const size = heap.length;
    let index = item.heapIndex;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= size) break;
      if (childIndex + 1 < size && before(heap[childIndex + 1]!, heap[childIndex]!)) childIndex += 1;
      const child = heap[childIndex]!;
      if (!before(child, item)) break;
      heap[index] = child;
      child.heapIndex = index;
      index = childIndex;
    }
    heap[index] = item;
    item.heapIndex = index;
  }
}

function before(a: DeadlineItem, b: DeadlineItem): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.heapSequence < b.heapSequence);
}
