import sortedBtree from "sorted-btree";
import { contains, type Key, type KeyRange, singleKey } from "./keys.js";
import { sortInSteps, type Steps, unitsPerStep, Visits } from "./steps.js";
import { nothing, type Value } from "./values.js";

/** A version of a key. */
export interface Version {
  readonly key: Key;
  /** The revision that made it. */
  readonly modified: number;
  /** Index of the change within that revision, from 0. */
  readonly sub: number;
  /** Revision in which the key was last created; 0 for a deletion. */
  readonly created: number;
  /** 1 at creation, incremented at each change; 0 for a deletion. */
  readonly version: number;
  readonly value: Value;
  /** The lease it is attached to; 0 for none. */
  readonly lease: bigint;
}

export function isDeletion(version: Version): boolean {
  return version.version === 0;
}

/**
 * Memory of a version in addition to key and value, measured: its record, its place in two lists, the headers
 * of two strings.
 */
const versionOverheadBytes = 200;

/** Approximate memory of a version. */
export function sizeOf({ key, value }: Version): number {
  return versionOverheadBytes + key.length + value.length;
}

/**
 * The uncompacted versions of a key, oldest first. Lists only grow at the end; compaction replaces them. So a
 * reader keeps seeing what it started with, whatever happens later. Most keys have only one version: a list
 * for it would take more than 100 bytes.
 */
type History = Version | Version[];
type Keys = InstanceType<typeof sortedBtree.default<Key, History>>;

/**
 * Cumulative losses of a state: removed versions and replaced nodes may be retained only by readers of
 * earlier views.
 */
class Losses {
  /** Bytes of removed versions. */
  removedBytes = 0;
  /** Number of changes: each may have replaced tree nodes that a view shares. */
  changes = 0;
}

/** Losses of a state since some moment. */
export class LossesSince {
  readonly losses: Readonly<Losses>;
  readonly changesBefore: number;
  readonly #removedBefore: number;

  constructor(losses: Readonly<Losses>) {
    this.losses = losses;
    this.changesBefore = losses.changes;
    this.#removedBefore = losses.removedBytes;
  }

  get removedBytes(): number {
    return this.losses.removedBytes - this.#removedBefore;
  }
}

/** Approximate memory of the tree per key: measured, and rounded up. */
const treeBytesPerKey = 24;

/** Reads keys with their history, up to one revision. */
export class KeysView {
  /** The newest complete revision. 1 is the empty beginning, as in etcd. */
  current: number;
  /**
   * Reads and watches before this revision are refused. -1: never compacted. Revision 0 can be compacted
   * once, as in etcd.
   */
  compacted: number;
  readonly visits: Visits;
  protected readonly keys: Keys;
  protected readonly losses: Losses;
  readonly #lossesSince: LossesSince;

  constructor(keys: Keys, current: number, compacted: number, visits: Visits, losses: Losses) {
    this.keys = keys;
    this.current = current;
    this.compacted = compacted;
    this.visits = visits;
    this.losses = losses;
    this.#lossesSince = new LossesSince(losses);
  }

  /** Losses of the state since this view was its current content. */
  get lossesSince(): LossesSince {
    return this.isFixed ? this.#lossesSince : new LossesSince(this.losses);
  }

  /** Approximate memory of the tree, without keys and versions. */
  get treeBytes(): number {
    return treeBytesPerKey * this.keys.size;
  }

  /** Whether the view is immutable, so that reads can be repeated. */
  get isFixed(): boolean {
    return true;
  }

  /** The current version of the key, if it exists. */
  get(key: Key): Version | undefined {
    return this.getAt(key, this.current);
  }

  /** Returns the key's version at a revision. */
  getAt(key: Key, revision: number): Version | undefined {
    this.visits.count += 1;
    const history = this.keys.get(key);
    return history === undefined ? undefined : lastUpTo(history, revision);
  }

  /** Iterates over the range at a revision, in order of keys; undefined for keys that did not exist then. */
  *range({ from, to }: KeyRange, revision: number): Generator<Version | undefined> {
    for (const [key, history] of this.keys.entries(from)) {
      if (to !== undefined && key >= to) return;
      this.visits.count += 1;
      yield lastUpTo(history, revision);
    }
  }

  /**
   * Returns the version of the key before a change; undefined once that was compacted, whether removed or
   * not.
   */
  before({ key, modified }: Version): Version | undefined {
    return modified > this.compacted ? this.getAt(key, modified - 1) : undefined;
  }

  /** All readable versions, key by key, oldest first. */
  *histories(): Generator<readonly Version[]> {
    for (const history of this.keys.values()) {
      this.visits.count += 1;
      const versions = listOf(history);
      const first = firstNeeded(versions, this.compacted);
      const end = firstFrom(versions, this.current + 1);
      if (first < end) yield versions.slice(first, end);
    }
  }
}

/** Below this number of changes, reading them all is cheaper than visiting keys. */
const manyChanges = 1_024;
/** Up to this number of keys, visiting them is cheaper. */
const fewKeys = 64;

/**
 * Keys with their history. A revision is a write transaction: all of its changes have the same number. Only
 * compaction removes versions, so a read of an earlier revision has the same result as a read at that time.
 *
 * `commit` makes a write visible as a whole: until then its puts and deletions are beyond the current
 * revision.
 */
export class Revisions extends KeysView {
  /** Every change, in order: watchers resume from here. */
  #changes: Version[] = [];
  /** Some changes were restored out of order. */
  #isUnsorted = false;
  /** Changes to keys that may have versions that are no longer readable. */
  readonly #garbage: (readonly Version[])[] = [];
  /** Approximate memory of all versions kept. */
  bytes = 0;
  /** Puts and deletions since this process began, counted as in etcd: the deletion of a range is one. */
  puts = 0;
  deletions = 0;
  #live = 0;
  /** Change in the number of live keys by uncommitted changes. */
  #liveChange = 0;

  constructor() {
    super(new sortedBtree.default<Key, History>(undefined, byKey), 1, -1, new Visits(), new Losses());
  }

  override get isFixed(): boolean {
    return false;
  }

  /** Another state replaces this one. From now on only its present readers retain its content. */
  abandon(): void {
    this.losses.removedBytes += this.bytes;
    this.losses.changes = Infinity;
  }

  /** Number of existing keys. */
  get live(): number {
    return this.#live;
  }

  /**
   * Returns an immutable view of the present content. Both share unchanged parts, so this costs almost
   * nothing.
   */
  view(): KeysView {
    return new KeysView(this.keys.clone(), this.current, this.compacted, this.visits, this.losses);
  }

  /** Returns the newest version of the key, including uncommitted changes. */
  newest(key: Key): Version | undefined {
    this.visits.count += 1;
    const history = this.keys.get(key);
    const newest = history && newestOf(history);
    return newest === undefined || isDeletion(newest) ? undefined : newest;
  }

  /** Makes the puts and deletions of this revision visible. */
  commit(revision: number): void {
    this.current = revision;
    this.#live += this.#liveChange;
    this.#liveChange = 0;
  }

  /** @param before the newest version of the key, including uncommitted changes */
  put(key: Key, value: Value, lease: bigint, revision: number, before: Version | undefined): Version {
    const version: Version = {
      key,
      modified: revision,
      sub: this.#subOf(revision),
      created: before?.created ?? revision,
      version: (before?.version ?? 0) + 1,
      value,
      lease,
    };
    if (before === undefined) this.#liveChange += 1;
    this.puts += 1;
    this.#append(version);
    return version;
  }

  /** The key must exist. */
  delete(key: Key, revision: number): Version {
    this.#liveChange -= 1;
    const sub = this.#subOf(revision);
    const deletion = { key, modified: revision, sub, created: 0, version: 0, value: nothing, lease: 0n };
    this.#append(deletion);
    return deletion;
  }

  /**
   * Refuses reads and watches before `revision` from now on. All changes of that revision itself are kept.
   * `sweep` removes versions that are no longer readable.
   */
  compact(revision: number): void {
    this.compacted = revision;
    this.#garbage.push(this.#changes.slice(0, firstFrom(this.#changes, revision + 1)));
    this.#changes = this.#changes.slice(firstFrom(this.#changes, revision));
  }

  get hasGarbage(): boolean {
    return this.#garbage.length > 0;
  }

  /** Removes compacted versions. Answers do not depend on its progress. */
  *sweep(): Steps<void> {
    for (let old = this.#garbage[0]; old !== undefined; old = this.#garbage[0]) {
      for (let index = 0; index < old.length; index += 1) {
        this.#compactKey(old[index]!.key);
        if (index % unitsPerStep === 0) yield;
      }
      this.#garbage.shift();
    }
  }

  /**
   * Returns changes from a place on, oldest first: all of complete revisions, and possibly a part of the
   * last. Finds up to about `changesMax`, visits up to `visitsMax`, and returns where to continue.
   */
  changesSince(from: Place, range: KeyRange, changesMax: number, visitsMax = Infinity): Changes {
    const key = singleKey(range);
    if (key !== undefined) return this.#changesOfKey(from, key, changesMax);
    return (
      this.#changesOfFew(from, range, changesMax) ?? this.#scanChanges(from, range, changesMax, visitsMax)
    );
  }

  /** The place after the last change. */
  get #end(): Place {
    return { revision: this.current + 1, sub: 0 };
  }

  #changesOfKey({ revision, sub }: Place, key: Key, changesMax: number): Changes {
    const history = listOf(this.keys.get(key) ?? []);
    const changes: Version[] = [];
    this.visits.count += 1;
    for (let index = firstFrom(history, revision, sub); index < history.length; index += 1) {
      const change = history[index]!;
      if (change.modified > this.current) break;
      if (changes.length >= changesMax) return { changes, next: placeOf(change) };
      this.visits.count += 1;
      changes.push(change);
    }
    return { changes, next: this.#end };
  }

  /** Visits keys instead of changes, if there are few keys with few changes: then other keys cost nothing. */
  #changesOfFew({ revision, sub }: Place, range: KeyRange, changesMax: number): Changes | undefined {
    const left = this.#changes.length - firstFrom(this.#changes, revision);
    if (left <= manyChanges || sub > 0) return undefined;
    const changes: Version[] = [];
    let looked = 0;
    for (const history of this.#historiesOf(range)) {
      looked += 1;
      this.visits.count += 1;
      const first = firstFrom(history, revision);
      const end = firstFrom(history, this.current + 1);
      if (looked > fewKeys || changes.length + end - first > changesMax) return undefined;
      for (let index = first; index < end; index += 1) changes.push(history[index]!);
    }
    changes.sort(inOrder);
    return { changes, next: this.#end };
  }

  *#historiesOf({ from, to }: KeyRange): Generator<readonly Version[]> {
    for (const [key, history] of this.keys.entries(from)) {
      if (to !== undefined && key >= to) return;
      yield listOf(history);
    }
  }

  #scanChanges(from: Place, range: KeyRange, changesMax: number, visitsMax: number): Changes {
    const changes: Version[] = [];
    const first = firstFrom(this.#changes, from.revision, from.sub);
    for (let index = first; index < this.#changes.length; index += 1) {
      const change = this.#changes[index]!;
      if (change.modified > this.current) break;
      if (changes.length >= changesMax || index - first >= visitsMax)
        return { changes, next: placeOf(change) };
      this.visits.count += 1;
      if (contains(range, change.key)) changes.push(change);
    }
    return { changes, next: this.#end };
  }

  /** Restores the content of `histories`, in its order. A long history may come in several parts. */
  restore(part: readonly Version[]): void {
    const [{ key }] = part as [Version];
    if (!this.keys.set(key, historyOf(part), false)) this.#restoreMore(key, part);
    if (!isDeletion(part.at(-1)!)) this.#live += 1;
    for (const version of part) {
      this.bytes += sizeOf(version);
      if (version.modified < this.compacted) continue;
      const last = this.#changes.at(-1);
      if (last !== undefined && inOrder(last, version) > 0) this.#isUnsorted = true;
      this.#changes.push(version);
    }
  }

  #restoreMore(key: Key, part: readonly Version[]): void {
    const history = this.keys.get(key)!;
    if (!isDeletion(newestOf(history))) this.#live -= 1;
    if (Array.isArray(history)) for (const version of part) history.push(version);
    else this.keys.set(key, [history, ...part]);
  }

  /** Detaches a restored version, the newest of its key, from its lease. */
  withoutLease(version: Version): void {
    const free = { ...version, lease: 0n };
    const history = this.keys.get(version.key)!;
    if (Array.isArray(history)) history[history.length - 1] = free;
    else this.keys.set(version.key, free);
    const place = firstFrom(this.#changes, version.modified, version.sub);
    if (this.#changes[place] === version) this.#changes[place] = free;
  }

  /** To be called after the last `restore`. */
  *restored(): Steps<void> {
    if (this.#isUnsorted) this.#changes = yield* sortInSteps(this.#changes, inOrder);
    this.#isUnsorted = false;
  }

  /** The revision up to which half of the kept changes were made; 0 if there are none. */
  get middle(): number {
    return this.#changes[this.#changes.length >>> 1]?.modified ?? 0;
  }

  #subOf(revision: number): number {
    const last = this.#changes.at(-1);
    return last?.modified === revision ? last.sub + 1 : 0;
  }

  #append(version: Version): void {
    const { key } = version;
    // This is often the first version of its key: `false` keeps an existing entry.
    if (version.version > 1 || !this.keys.set(key, version, false)) {
      const history = this.keys.get(key)!;
      if (Array.isArray(history)) history.push(version);
      else this.keys.set(key, [history, version]);
    }
    this.#changes.push(version);
    this.bytes += sizeOf(version);
    this.losses.changes += 1;
  }

  #compactKey(key: Key): void {
    this.visits.count += 1;
    this.losses.changes += 1;
    const found = this.keys.get(key);
    if (found === undefined) return;
    const history = listOf(found);
    const first = firstNeeded(history, this.compacted);
    for (let index = 0; index < first; index += 1) this.#remove(history[index]!);
    if (first === history.length) this.keys.delete(key);
    else if (first > 0) this.keys.set(key, historyOf(history.slice(first)));
  }

  #remove(version: Version): void {
    this.bytes -= sizeOf(version);
    this.losses.removedBytes += sizeOf(version);
  }
}

function byKey(one: Key, other: Key): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Orders by revision, and by index within one. */
export function inOrder(one: Version, other: Version): number {
  return one.modified - other.modified || one.sub - other.sub;
}

/** Position of a change: its revision, and its index in that. */
export interface Place {
  readonly revision: number;
  readonly sub: number;
}

function placeOf({ modified, sub }: Version): Place {
  return { revision: modified, sub };
}

export interface Changes {
  readonly changes: Version[];
  /** Everything before this place has been visited. */
  readonly next: Place;
}

function listOf(history: History): readonly Version[] {
  return Array.isArray(history) ? history : [history];
}

function historyOf(versions: readonly Version[]): History {
  return versions.length === 1 ? versions[0]! : [...versions];
}

function newestOf(history: History): Version {
  return Array.isArray(history) ? history.at(-1)! : history;
}

/** Returns the index of the first version that reads and watches from `compacted` on can reach. */
function firstNeeded(history: readonly Version[], compacted: number): number {
  const index = firstFrom(history, compacted);
  const before = history[index - 1];
  const isSeen = before !== undefined && !isDeletion(before) && history[index]?.modified !== compacted;
  return isSeen ? index - 1 : index;
}

/** Returns the index of the first version made at that revision with index `sub`, or later. */
function firstFrom(versions: readonly Version[], revision: number, sub = 0): number {
  let [low, high] = [0, versions.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const version = versions[middle]!;
    const isBefore = version.modified < revision || (version.modified === revision && version.sub < sub);
    if (isBefore) low = middle + 1;
    else high = middle;
  }
  return low;
}

function lastUpTo(history: History, revision: number): Version | undefined {
  const newest = newestOf(history);
  // The usual case.
  const version = newest.modified <= revision ? newest : versionUpTo(listOf(history), revision);
  return version === undefined || isDeletion(version) ? undefined : version;
}

function versionUpTo(versions: readonly Version[], revision: number): Version | undefined {
  return versions[firstFrom(versions, revision + 1) - 1];
}
