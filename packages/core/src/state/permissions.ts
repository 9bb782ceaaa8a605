import { type Permission, Permission_Type as Type } from "leasehold/etcd/gen/etcd/authpb_pb.js";
import { type Key, type KeyRange, rangeOf } from "./keys.js";

/** Operations on keys: read or write. */
export type Right = "read" | "write";

/** The keys that a user may read or write: ranges that neither overlap nor touch, in order. */
class KeySet {
  readonly #ranges: readonly KeyRange[];

  constructor(ranges: readonly KeyRange[]) {
    const sorted = ranges
      .filter(({ from, to }) => to === undefined || from < to)
      .sort((one, other) => (one.from < other.from ? -1 : 1));
    const merged: { from: Key; to: Key | undefined }[] = [];
    for (const { from, to } of sorted) {
      const last = merged.at(-1);
      if (last === undefined || (last.to !== undefined && last.to < from)) merged.push({ from, to });
      else if (last.to !== undefined && (to === undefined || to > last.to)) last.to = to;
    }
    this.#ranges = merged;
  }

  /** Whether the set has the whole range; for an empty range, its bounds. */
  has({ from, to }: KeyRange): boolean {
    const range = this.#before(from);
    if (range === undefined || (range.to !== undefined && from >= range.to)) return false;
    if (to === undefined) return range.to === undefined;
    return to > range.from && (range.to === undefined || to <= range.to);
  }

  /** The last range that begins at the key or before it. */
  #before(key: Key): KeyRange | undefined {
    let [low, high] = [0, this.#ranges.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ranges[middle]!.from <= key) low = middle + 1;
      else high = middle;
    }
    return this.#ranges[low - 1];
  }
}

/** The combined permissions of one user's roles. */
export class Permissions {
  readonly #keys: Record<Right, KeySet>;

  constructor(granted: readonly Permission[]) {
    // An unknown type, from a later version, grants nothing.
    const ranges = (type: Type) =>
      granted
        .filter(({ permType }) => permType === type || permType === Type.READWRITE)
        .map(({ key, rangeEnd }) => rangeOf(key, rangeEnd));
    this.#keys = { read: new KeySet(ranges(Type.READ)), write: new KeySet(ranges(Type.WRITE)) };
  }

  allow(right: Right, range: KeyRange): boolean {
    return this.#keys[right].has(range);
  }
}
