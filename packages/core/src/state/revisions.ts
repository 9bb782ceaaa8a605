import sortedBtree from "sorted-btree";
import { contains, type Key, type KeyRange, singleKey } from "./keys.js";
import { sortInSteps, type Steps, unitsPerStep, Visits } from "./steps.js";
import { nothing, type Value } from "./values.js";

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
  readonly value: Value;
  /** The lease it hangs on; 0 for none. */
  readonly lease: bigint;
}

export function isDeletion(version: Version): boolean {
  return version.version === 0;
}

/**
 * What a version takes in memory beside its key and value, measured: its record, its place in two lists, the
 * heads of two strings.
 */
const versionOverheadBytes = 200;

/** What it takes in memory, about. */
export function sizeOf({ key, value }: Version): number {
  return versionOverheadBytes + key.length + value.length;
}

/**
 * What a key was, oldest first, as far as it has not been compacted away. It only ever grows at its end:
 * compaction puts another in its place. So a reader that has one sees what was there then, whatever happens
 * later. Most keys have one version: a list of their own would take more than 100 bytes.
 */
type History = Version | Version[];
type Keys = InstanceType<typeof sortedBtree.default<Key, History>>;

/** What a state has lost since it began: a reader that keeps a view of an earlier time may keep that alone. */
class Losses {
  /** Of versions, in bytes. */
  removedBytes = 0;
  /** Each may have put other nodes of the tree in the place of those that a view shares. */
  changes = 0;
}

/** What a state has lost since a moment. */
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

/** What the tree takes in memory for each key, about: measured, and rounded up. */
const treeBytesPerKey = 24;

/** Reading keys with their past, up to one revision. */
export class KeysView {
  /** The newest that is whole. 1 is the empty beginning, as clients know it from etcd. */
  current: number;
  /**
   * Reads and watches before it are refused. -1: never compacted. To compact revision 0 is allowed once, as
   * in etcd.
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

  /** Since what is read here was all that there is. */
  get lossesSince(): LossesSince {
    return this.isFixed ? this.#lossesSince : new LossesSince(this.losses);
  }

  /** Of its tree, without keys and versions, about. */
  get treeBytes(): number {
    return treeBytesPerKey * this.keys.size;
  }

  /** It does not change: what was found in it is found again. */
  get isFixed(): boolean {
    return true;
  }

  /** What the key is now, if it is. */
  get(key: Key): Version | undefined {
    return this.getAt(key, this.current);
  }

  /** What it was at a revision. */
  getAt(key: Key, revision: number): Version | undefined {
    this.visits.count += 1;
    const history = this.keys.get(key);
    return history === undefined ? undefined : lastUpTo(history, revision);
  }

  /** Keys of the range in order, as they were at a revision; nothing for each key that was not there then. */
  *range({ from, to }: KeyRange, revision: number): Generator<Version | undefined> {
    for (const [key, history] of this.keys.entries(from)) {
      if (to !== undefined && key >= to) return;
      this.visits.count += 1;
      yield lastUpTo(history, revision);
    }
  }

  /**
   * What the key was before a change of it; nothing if that was compacted away, whether or not it has been
   * removed.
   */
  before({ key, modified }: Version): Version | undefined {
    return modified > this.compacted ? this.getAt(key, modified - 1) : undefined;
  }

  /** All that can be read, key by key, oldest first. */
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

/** So many changes are not worth a look at the keys. */
const manyChanges = 1_024;
/** So many keys are worth it. */
const fewKeys = 64;

/**
 * Keys with their past. A revision is a write transaction: all that one changes bears the same number.
 * Nothing is deleted but by compaction, so a read of an earlier revision sees what a read then would have
 * seen.
 *
 * A write is made known as a whole, by `commit`: until then what it has put and deleted is beyond the current
 * revision.
 */
export class Revisions extends KeysView {
  /** Every change, in order: watchers resume from here. */
  #changes: Version[] = [];
  /** Some of them were restored in another order. */
  #isUnsorted = false;
  /** Changes by which keys may have a past that nobody can read any more. */
  readonly #garbage: (readonly Version[])[] = [];
  /** What all that is kept takes in memory, about. */
  bytes = 0;
  /** Since this process began, as etcd counts them: a deletion of a range is one. */
  puts = 0;
  deletions = 0;
  #live = 0;
  /** By what is not committed yet. */
  #liveChange = 0;

  constructor() {
    super(new sortedBtree.default<Key, History>(undefined, byKey), 1, -1, new Visits(), new Losses());
  }

  override get isFixed(): boolean {
    return false;
  }

  /** Another state takes the place of this one: who still reads here keeps it. */
  abandon(): void {
    this.losses.removedBytes += this.bytes;
    this.losses.changes = Infinity;
  }

  /** How many keys there are now. */
  get live(): number {
    return this.#live;
  }

  /** All as it is now, while this goes on. The two share what neither changes: this costs next to nothing. */
  view(): KeysView {
    return new KeysView(this.keys.clone(), this.current, this.compacted, this.visits, this.losses);
  }

  /** What the key is now, what is not committed yet included. */
  newest(key: Key): Version | undefined {
    this.visits.count += 1;
    const history = this.keys.get(key);
    const newest = history && newestOf(history);
    return newest === undefined || isDeletion(newest) ? undefined : newest;
  }

  /** What was put and deleted at this revision is there from now on. */
  commit(revision: number): void {
    this.current = revision;
    this.#live += this.#liveChange;
    this.#liveChange = 0;
  }

  /** @param before what the key is now, what is not committed yet included */
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

  /** The key is there. */
  delete(key: Key, revision: number): Version {
    this.#liveChange -= 1;
    const sub = this.#subOf(revision);
    const deletion = { key, modified: revision, sub, created: 0, version: 0, value: nothing, lease: 0n };
    this.#append(deletion);
    return deletion;
  }

  /**
   * Reads and watches before `revision` are refused from now on. All changes of that revision itself stay.
   * What nobody can read any more is removed by `sweep`.
   */
  compact(revision: number): void {
    this.compacted = revision;
    this.#garbage.push(this.#changes.slice(0, firstFrom(this.#changes, revision + 1)));
    this.#changes = this.#changes.slice(firstFrom(this.#changes, revision));
  }

  get hasGarbage(): boolean {
    return this.#garbage.length > 0;
  }

  /** Removes what was compacted away. No answer depends on whether, or how far, that has happened. */
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
   * Changes from there on, oldest first: all of revisions that are whole, and the last of which may have been
   * begun only. It finds up to about `changesMax`, looks at up to `visitsMax`, and says where to go on.
   */
  changesSince(from: Place, range: KeyRange, changesMax: number, visitsMax = Infinity): Changes {
    const key = singleKey(range);
    if (key !== undefined) return this.#changesOfKey(from, key, changesMax);
    return (
      this.#changesOfFew(from, range, changesMax) ?? this.#scanChanges(from, range, changesMax, visitsMax)
    );
  }

  /** After all that there is. */
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

  /**
   * When few keys have changed little, that is found by looking at them, however much others have changed.
   */
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

  /** Takes in what `histories` told, in its order; a long history may come in several parts. */
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

  /** Of what was restored: the newest of its key hangs on no lease. */
  withoutLease(version: Version): void {
    const free = { ...version, lease: 0n };
    const history = this.keys.get(version.key)!;
    if (Array.isArray(history)) history[history.length - 1] = free;
    else this.keys.set(version.key, free);
    const place = firstFrom(this.#changes, version.modified, version.sub);
    if (this.#changes[place] === version) this.#changes[place] = free;
  }

  /** After the last `restore`. */
  *restored(): Steps<void> {
    if (this.#isUnsorted) this.#changes = yield* sortInSteps(this.#changes, inOrder);
    this.#isUnsorted = false;
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
    const { key } = version;
    // The first of a key as often as not: `false` leaves what is there.
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

/** Of revisions, and of changes of one revision. */
export function inOrder(one: Version, other: Version): number {
  return one.modified - other.modified || one.sub - other.sub;
}

/** A change: the revision, and which of that. */
export interface Place {
  readonly revision: number;
  readonly sub: number;
}

function placeOf({ modified, sub }: Version): Place {
  return { revision: modified, sub };
}

export interface Changes {
  readonly changes: Version[];
  /** Everything before it has been looked at. */
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

/** The first that reads and watches from `compacted` on can come to. */
function firstNeeded(history: readonly Version[], compacted: number): number {
  const index = firstFrom(history, compacted);
  const before = history[index - 1];
  const isSeen = before !== undefined && !isDeletion(before) && history[index]?.modified !== compacted;
  return isSeen ? index - 1 : index;
}

/** The first that was made at that revision, as the `sub`-th change of it, or later. */
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
  // Nearly always.
  const version = newest.modified <= revision ? newest : versionUpTo(listOf(history), revision);
  return version === undefined || isDeletion(version) ? undefined : version;
}

function versionUpTo(versions: readonly Version[], revision: number): Version | undefined {
  return versions[firstFrom(versions, revision + 1) - 1];
}
