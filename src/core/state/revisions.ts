import { faults } from "#core-faults";
import sortedBtree from "sorted-btree";
import { bytesOf, type Key, type KeyRange, contains } from "./keys.js";

/** One state of one key. */
export interface Version {
  readonly key: Key;
  /** Revision that made it. */
  readonly modified: number;
  /** Which change of that revision it was, from 0. */
  readonly sub: number;
  /** Revision at which the key came into being (again); 0 for a deletion. */
  readonly created: number;
  /** 1 when created, one more at each change; 0 for a deletion. */
  readonly version: number;
  readonly value: Uint8Array;
  /** The lease it hangs on; 0 for none. */
  readonly lease: bigint;
}

export function isDeletion(version: Version): boolean {
  return version.version === 0;
}

export const nothing = new Uint8Array(0);

/** What a version takes in memory beside its key and value, measured: its record, its place in two lists, what its value is kept in. */
const versionOverheadBytes = 400;

/** What it takes in memory, about. */
export function sizeOf({ key, value }: Version): number {
  return versionOverheadBytes + key.length + value.length;
}

/** A part of something larger keeps all of it in memory: what is kept of a large request, or piece, is copied then. */
export function owned(value: Uint8Array): Uint8Array {
  return value.buffer.byteLength > 2 * value.length + versionOverheadBytes ? value.slice() : value;
}

/** What a key was, oldest first, as far as it has not been compacted away. */
type History = Version[];

/**
 * Keys with their past. A revision is a write transaction: all that one changes bears the same number. Nothing is
 * deleted but by compaction, so a read of an earlier revision sees what a read then would have seen.
 */
export class Revisions {
  /** The newest. 1 is the empty beginning, as clients know it from etcd. */
  current = 1;
  /** Reads and watches before it are refused. -1: never compacted. To compact revision 0 is allowed once, as in etcd. */
  compacted = -1;
  readonly #keys = new sortedBtree.default<Key, History>();
  /** Every change, in order: watchers resume from here. */
  #changes: Version[] = [];
  /** How many keys there are now. */
  #live = 0;
  /** What all that is kept takes in memory, about. */
  bytes = 0;

  get live(): number {
    return this.#live;
  }

  /** What the key is now, if it is. */
  get(key: Key): Version | undefined {
    const newest = this.#keys.get(key)?.at(-1);
    return newest === undefined || isDeletion(newest) ? undefined : newest;
  }

  /** What it was at a revision. */
  getAt(key: Key, revision: number): Version | undefined {
    const history = this.#keys.get(key);
    return history === undefined ? undefined : lastUpTo(history, revision);
  }

  /** Keys of the range in order, as they were at a revision. */
  *range({ from, to }: KeyRange, revision: number): Generator<Version> {
    for (const [key, history] of this.#keys.entries(from)) {
      if (to !== undefined && key >= to) return;
      const version = lastUpTo(history, revision);
      if (version !== undefined) yield version;
    }
  }

  put(key: Key, value: Uint8Array, lease: bigint, revision: number): Version {
    const before = this.get(key);
    const version: Version = {
      key,
      modified: revision,
      sub: this.#subOf(revision),
      created: before?.created ?? revision,
      version: (before?.version ?? 0) + 1,
      value: owned(value),
      lease,
    };
    if (before === undefined) this.#live += 1;
    this.#append(version);
    return version;
  }

  /** Nothing if there is no such key. */
  delete(key: Key, revision: number): Version | undefined {
    if (this.get(key) === undefined) return undefined;
    this.#live -= 1;
    const sub = this.#subOf(revision);
    const deletion = { key, modified: revision, sub, created: 0, version: 0, value: nothing, lease: 0n };
    this.#append(deletion);
    return deletion;
  }

  /** Forgets what reads and watches from `revision` on do not need. All changes of that revision itself stay. */
  compact(revision: number): void {
    this.compacted = revision;
    const old = this.#changes.slice(0, this.#firstChangeFrom(revision + 1));
    for (const key of new Set(old.map((change) => change.key))) this.#compactKey(key, revision);
    this.#changes = this.#changes.slice(this.#firstChangeFrom(revision));
  }

  /** Changes of revision `from` and later, oldest first, up to `changesMax` and then to the end of that revision. */
  changesSince(from: number, range: KeyRange, changesMax: number): Version[] {
    const found: Version[] = [];
    for (let index = this.#firstChangeFrom(from); index < this.#changes.length; index++) {
      const change = this.#changes[index]!;
      if (found.length >= changesMax && change.modified !== found.at(-1)!.modified) break;
      if (contains(range, change.key)) found.push(change);
    }
    return found;
  }

  /** What the key was before a change of it. */
  before(change: Version): Version | undefined {
    return this.getAt(change.key, change.modified - 1);
  }

  /** All that is kept, key by key, oldest first. */
  *histories(): Generator<readonly Version[]> {
    for (const history of this.#keys.values()) yield history;
  }

  /** Takes in what `histories` told, in its order; a long history may come in several parts. */
  restore(part: readonly Version[]): void {
    const [{ key }] = part as [Version];
    const history = this.#keys.get(key);
    if (history === undefined) this.#keys.set(key, [...part]);
    else for (const version of part) history.push(version);
    for (const version of part) {
      this.bytes += sizeOf(version);
      if (version.modified >= this.compacted) this.#changes.push(version);
    }
  }

  /** After the last `restore`. */
  restored(): void {
    for (const history of this.#keys.values()) if (!isDeletion(history.at(-1)!)) this.#live += 1;
    this.#changes.sort((a, b) => a.modified - b.modified || a.sub - b.sub);
  }

  /** Of the changes that are kept, half are of this revision or earlier ones; 0 if there is none. */
  get middle(): number {
    return this.#changes[this.#changes.length >>> 1]?.modified ?? 0;
  }

  #subOf(revision: number): number {
    const last = this.#changes.at(-1);
    return last?.modified === revision ? last.sub + 1 : 0;
  }

  #append(version: Version): void {
    const history = this.#keys.get(version.key);
    if (history === undefined) this.#keys.set(version.key, [version]);
    else history.push(version);
    this.#changes.push(version);
    this.bytes += sizeOf(version);
  }

  #compactKey(key: Key, revision: number): void {
    const history = this.#keys.get(key);
    if (history === undefined) return;
    const isNeeded = (version: Version, next: Version | undefined) =>
      version.modified >= revision ||
      (!isDeletion(version) && (next === undefined || next.modified > revision));
    let keep = 0;
    while (keep < history.length && !isNeeded(history[keep]!, history[keep + 1])) keep += 1;
    if (!faults.bytesStay) for (let index = 0; index < keep; index++) this.bytes -= sizeOf(history[index]!);
    if (keep === history.length) this.#keys.delete(key);
    else history.splice(0, keep);
  }

  #firstChangeFrom(revision: number): number {
    let [low, high] = [0, this.#changes.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#changes[middle]!.modified < revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function lastUpTo(history: History, revision: number): Version | undefined {
  for (let index = history.length - 1; index >= 0; index--) {
    const version = history[index]!;
    if (version.modified <= revision) return isDeletion(version) ? undefined : version;
  }
  return undefined;
}

/** As clients see it. */
export function keyValueFields(version: Version): {
  key: Uint8Array;
  value: Uint8Array;
  createRevision: bigint;
  modRevision: bigint;
  version: bigint;
  lease: bigint;
} {
  return {
    key: bytesOf(version.key),
    value: version.value,
    createRevision: BigInt(version.created),
    modRevision: BigInt(version.modified),
    version: BigInt(version.version),
    lease: version.lease,
  };
}
