/**
 * Deadlines in the order in which they fall due: a binary heap whose items know their place, so that scheduling,
 * re-scheduling and cancelling cost O(log n) and allocate nothing.
 */
export class Deadlines {
    #heap = [];
    #sequence = 0;
    get size() {
        return this.#heap.length;
    }
    /** Adds the item, or moves it when it is already present. */
    schedule(item, dueMs) {
        if (Number.isNaN(dueMs))
            throw new RangeError("a deadline must be a number, not NaN");
        item.dueMs = dueMs;
        item.heapSequence = this.#sequence++;
        if (item.heapIndex === -1) {
            item.heapIndex = this.#heap.length;
            this.#heap.push(item);
            this.#siftUp(item);
        }
        else {
            this.#siftUp(item);
            this.#siftDown(item);
        }
    }
    /** Takes the item out. True when it was present. */
    cancel(item) {
        const index = item.heapIndex;
        if (index === -1)
            return false;
        const last = this.#heap.pop();
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
    nextDueMs() {
        return this.#heap[0]?.dueMs ?? Infinity;
    }
    /** Takes out and returns the first item if it is due by `nowMs`. Items due at the same moment come in scheduling order. */
    popDue(nowMs) {
        const first = this.#heap[0];
        if (first === undefined || first.dueMs > nowMs)
            return undefined;
        this.cancel(first);
        return first;
    }
    #siftUp(item) {
        const heap = this.#heap;
        let index = item.heapIndex;
        while (index > 0) {
            const parentIndex = (index - 1) >> 1;
            const parent = heap[parentIndex];
            if (!before(item, parent))
                break;
            heap[index] = parent;
            parent.heapIndex = index;
            index = parentIndex;
        }
        heap[index] = item;
        item.heapIndex = index;
    }
    #siftDown(item) {
        const heap = this.#heap;
        const size = heap.length;
        let index = item.heapIndex;
        for (;;) {
            let childIndex = 2 * index + 1;
            if (childIndex >= size)
                break;
            if (childIndex + 1 < size && before(heap[childIndex + 1], heap[childIndex]))
                childIndex++;
            const child = heap[childIndex];
            if (!before(child, item))
                break;
            heap[index] = child;
            child.heapIndex = index;
            index = childIndex;
        }
        heap[index] = item;
        item.heapIndex = index;
    }
}
function before(a, b) {
    return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.heapSequence < b.heapSequence);
}
