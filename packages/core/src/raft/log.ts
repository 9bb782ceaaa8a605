import { corrupt } from "./corrupt.js";
import { Memberships } from "./membership.js";
import { packedAtOnce, PackedEntries } from "./packed-entries.js";
import type { Entry, SnapshotMeta } from "./types.js";

/** Memory of an entry without data: its record, and its frame in messages and on disk. */
const entryOverheadBytes = 32;

export function sizeOf({ data }: Entry): number {
  return sizeWith(data.length);
}

function sizeWith(dataBytes: number): number {
  return dataBytes + entryOverheadBytes;
}

/** A pending write, and the last entry that it makes durable. */
interface Write {
  readonly sequence: number;
  lastIndex: number;
}

/**
 * The tail of the log in memory, and how far each of its uses has got: base ≤ packed ≤ handedOut ≤ commit ≤
 * last, and persisted ≤ written ≤ last. Entries handed out are persisted, except for a leader's snapshot that
 * is still being installed. A snapshot covers everything up to `base`.
 */
export class RaftLog {
  readonly memberships: Memberships;
  /** The newest snapshot on disk; sent to members that need dropped entries. */
  snapshot: SnapshotMeta;
  #base: number;
  #baseTerm: number;
  /** Entries up to `#packedEnd`. */
  readonly #packed = new PackedEntries();
  #packedEnd: number;
  /** The entries after the packed ones. */
  #entries: Entry[] = [];
  #commit: number;
  #handedOut: number;
  #written: number;
  #persisted: number;
  #writes: Write[] = [];

  constructor(snapshot: SnapshotMeta, entries: readonly Entry[], commit: number) {
    this.snapshot = snapshot;
    this.memberships = new Memberships(snapshot.index, snapshot.membership);
    this.#base = snapshot.index;
    this.#baseTerm = snapshot.term;
    this.#packedEnd = snapshot.index;
    for (const entry of entries) {
      if (entry.index <= this.#base) continue;
      if (entry.index !== this.lastIndex + 1)
        throw corrupt(`the log has entry ${entry.index} after ${this.lastIndex}`);
      if (entry.term < this.lastTerm)
        throw corrupt(`the log has term ${entry.term} after term ${this.lastTerm}`);
      this.#push(entry);
    }
    this.#written = this.lastIndex;
    this.#persisted = this.lastIndex;
    this.#commit = Math.max(commit, snapshot.index);
    this.#handedOut = snapshot.index;
    if (commit > this.lastIndex)
      throw corrupt(`entries up to ${commit} were committed, but the log ends at ${this.lastIndex}`);
  }

  /** The last entry that was dropped. */
  get base(): number {
    return this.#base;
  }

  get lastIndex(): number {
    return this.#packedEnd + this.#entries.length;
  }

  get lastTerm(): number {
    return this.termAt(this.lastIndex)!;
  }

  get commit(): number {
    return this.#commit;
  }

  /**
   * The commit index that a restarted server may start with: the server will have all of these entries, even
   * if the next write is torn. A snapshot being installed does not count, but it is committed anyway.
   */
  get durableCommit(): number {
    return Math.min(this.#commit, this.#persisted);
  }

  get persisted(): number {
    return this.#persisted;
  }

  /** Undefined for entries that don't exist or were dropped. */
  termAt(index: number): number | undefined {
    if (index === this.#base) return this.#baseTerm;
    if (this.#isPacked(index)) return this.#packed.termAt(index);
    return this.#entries[index - this.#packedEnd - 1]?.term;
  }

  /** @throws RangeError if that entry has not been applied, or was dropped */
  snapshotMeta(index: number, applied: number): SnapshotMeta {
    const term = index <= applied ? this.termAt(index) : undefined;
    if (term === undefined)
      throw new RangeError(
        `no snapshot is possible at ${index}: applied ${applied}, log after ${this.#base}`,
      );
    return { index, term, membership: this.memberships.at(index) };
  }

  /** `index` must be that of an entry that is kept. */
  sizeAt(index: number): number {
    if (this.#isPacked(index)) return sizeWith(this.#packed.lengthAt(index));
    return sizeOf(this.#entries[index - this.#packedEnd - 1]!);
  }

  /** "If the logs have last entries with different terms, the later term is more up-to-date" (Raft 5.4.1). */
  isUpToDate(lastIndex: number, lastTerm: number): boolean {
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);
  }

  /**
   * The last entry at or before `index` that could agree with another log whose term there is `term`: terms
   * never decrease along a log, so all entries with a later term can be skipped at once (Raft 5.3).
   */
  lastNotAfterTerm(index: number, term: number): { index: number; term: number } {
    let at = Math.min(index, this.lastIndex);
    while (at > this.#base && this.termAt(at)! > term) at -= 1;
    return { index: at, term: this.termAt(at) ?? 0 };
  }

  /**
   * Returns entries from `first` on, with at most `bytesMax` of data, but at least one entry if there is one.
   */
  slice(first: number, bytesMax: number): readonly Entry[] {
    let end = first;
    for (let bytes = 0; end <= this.lastIndex; end += 1) {
      bytes += this.sizeAt(end);
      if (bytes > bytesMax && end > first) break;
    }
    return this.#between(first, end);
  }

  /** Returns entries from `first` up to but excluding `end`. All must be kept. */
  #between(first: number, end: number): readonly Entry[] {
    const start = this.#packedEnd + 1;
    if (first >= start) return this.#entries.slice(first - start, end - start);
    const entries: Entry[] = [];
    for (let index = first; index < Math.min(start, end); index += 1) entries.push(this.#packed.at(index));
    return end > start ? entries.concat(this.#entries.slice(0, end - start)) : entries;
  }

  #isPacked(index: number): boolean {
    return index > this.#base && index <= this.#packedEnd;
  }

  /**
   * Appends a leader's own entry: "leader never overwrites or deletes entries in its log; it only appends"
   * (figure 3).
   */
  append(entry: Entry): void {
    this.#push(entry);
  }

  /**
   * Appends a leader's entries. "If an existing entry conflicts with a new one, delete the existing entry and
   * all that follow it" (figure 2); entries that agree stay, as the message may be an old one. Undefined if
   * the logs don't agree at the previous entry.
   * @returns the last index that agrees with the leader's log
   */
  accept(previousIndex: number, previousTerm: number, entries: readonly Entry[]): number | undefined {
    const meets = this.termAt(previousIndex) === previousTerm;
    if (!meets) return undefined;
    for (const entry of entries) {
      if (entry.index <= this.lastIndex) {
        if (this.termAt(entry.index) === entry.term) continue;
        this.#truncate(entry.index);
      }
      this.#push(entry);
    }
    return previousIndex + entries.length;
  }

  /**
   * A leader has all committed entries unchanged (Leader Completeness, 5.4.3). If it has others, a disk is
   * faulty.
   */
  assertAgrees(index: number, term: number): void {
    if (index <= this.#commit && (this.termAt(index) ?? term) !== term)
      throw corrupt(`the leader's log has term ${term} at ${index}, but the committed entry has another`);
  }

  commitTo(index: number): void {
    if (index > this.lastIndex)
      throw corrupt(
        `entries up to ${index} are committed, but this log ends at ${this.lastIndex}: was it lost?`,
      );
    if (index > this.#commit) this.#commit = index;
  }

  /**
   * Commits the entry, and everything before it: a log with this entry has those, too (Log Matching, 5.3).
   */
  commitIfThere(index: number, term: number): void {
    this.assertAgrees(index, term);
    if (this.termAt(index) === term) this.commitTo(index);
  }

  /** Returns the entries to write. */
  takeUnwritten(): readonly Entry[] {
    const entries = this.#between(this.#written + 1, this.lastIndex + 1);
    this.#written = this.lastIndex;
    return entries;
  }

  get hasUnwritten(): boolean {
    return this.#written < this.lastIndex;
  }

  /** Everything returned to be written is in this write or an earlier one. */
  writing(sequence: number): void {
    this.#writes.push({ sequence, lastIndex: this.#written });
  }

  wrote(sequence: number): void {
    while (this.#writes.length > 0 && this.#writes[0]!.sequence <= sequence)
      this.#persisted = this.#writes.shift()!.lastIndex;
  }

  /** Returns entries to apply, excluding those that this server might not have after a crash. */
  takeCommitted(entriesMax: number): readonly Entry[] {
    const end = Math.min(this.#commit, this.#persisted, this.#handedOut + entriesMax);
    if (end <= this.#handedOut) return [];
    const entries = this.#between(this.#handedOut + 1, end + 1);
    this.#handedOut = end;
    this.#pack();
    return entries;
  }

  /** Packs entries that were handed out: they are committed, so never truncated, and rarely needed again. */
  #pack(): void {
    const count = this.#handedOut - this.#packedEnd;
    if (count < packedAtOnce) return;
    this.#packed.add(this.#entries.slice(0, count));
    this.#entries = this.#entries.slice(count);
    this.#packedEnd = this.#handedOut;
  }

  get hasCommitted(): boolean {
    return Math.min(this.#commit, this.#persisted) > this.#handedOut;
  }

  get handedOut(): number {
    return this.#handedOut;
  }

  /** Drops the entries up to `covered`, which a snapshot covers, except the last ones within both bounds. */
  compact(covered: number, keepEntries: number, keepBytes: number): void {
    let index = covered;
    let bytes = 0;
    for (; index > this.#base && covered - index < keepEntries; index -= 1) {
      bytes += this.sizeAt(index);
      if (bytes > keepBytes) break;
    }
    if (index <= this.#base) return;
    const term = this.termAt(index)!;
    this.#packed.forgetBefore(index + 1);
    if (index > this.#packedEnd) {
      this.#entries = this.#entries.slice(index - this.#packedEnd);
      this.#packedEnd = index;
    }
    this.#base = index;
    this.#baseTerm = term;
    this.memberships.compact(index);
  }

  /** Replaces the whole log with a leader's snapshot (Raft 7). The next write makes it durable. */
  restore(snapshot: SnapshotMeta): void {
    this.#limitWrites(this.#commit);
    this.snapshot = snapshot;
    this.#base = snapshot.index;
    this.#baseTerm = snapshot.term;
    this.#packed.forgetBefore(Infinity);
    this.#packedEnd = snapshot.index;
    this.#entries = [];
    this.#commit = snapshot.index;
    this.#handedOut = snapshot.index;
    this.#written = snapshot.index;
    this.memberships.restore(snapshot.index, snapshot.membership);
  }

  #push(entry: Entry): void {
    this.memberships.append(entry);
    this.#entries.push(entry);
  }

  #truncate(index: number): void {
    this.#entries.length = index - this.#packedEnd - 1;
    this.memberships.truncate(index);
    this.#limitWrites(index - 1);
  }

  /**
   * Entries after `index` were replaced. When a pending write completes, it says nothing about the new
   * entries there, even if those get the same index and term again.
   */
  #limitWrites(index: number): void {
    this.#written = Math.min(this.#written, index);
    this.#persisted = Math.min(this.#persisted, index);
    for (const write of this.#writes) write.lastIndex = Math.min(write.lastIndex, index);
  }
}
