import type { Recovered } from "../../src/core/raft/api.js";
import type { Entry, Persist, SnapshotMeta } from "../../src/core/raft/types.js";
import type { SimRandom } from "../kit/random.js";

export interface StoredSnapshot {
  readonly meta: SnapshotMeta;
  readonly pieces: readonly Uint8Array[];
}

/** A write on its way to the disk. */
export interface PendingWrite {
  readonly persist: Persist;
  /** With `persist.snapshot`: its content. */
  readonly pieces: readonly Uint8Array[] | undefined;
}

/** What survives a crash: the writes that were finished, and perhaps a beginning of the next one (a torn write). */
export class SimDisk {
  #recovered: Recovered;
  /** Absent: the state before the first entry. */
  snapshot: StoredSnapshot | undefined;

  constructor(recovered: Recovered) {
    this.#recovered = recovered;
  }

  get recovered(): Recovered {
    return this.#recovered;
  }

  write(write: PendingWrite): void {
    this.#write(write, Infinity);
  }

  /** The power fails in the middle of it: whole records, from the first on, are there; a broken one is cut off. */
  tear(write: PendingWrite, random: SimRandom): void {
    this.#write(write, random.below(write.persist.entries.length + 3));
  }

  /** The first records of a write, in the order that `Persist` tells: hard state, snapshot, entries. */
  #write({ persist, pieces }: PendingWrite, records: number): void {
    if (records > 0) this.#recovered = { ...this.#recovered, hardState: persist.hardState };
    if (records > 1 && persist.snapshot !== undefined) this.#install(persist.snapshot, pieces ?? []);
    if (records > 2) this.#append(persist.entries.slice(0, records - 2));
  }

  /** A snapshot of this server's own: the log before it may go. */
  takeSnapshot(snapshot: StoredSnapshot): void {
    if (snapshot.meta.index <= this.#recovered.snapshot.index) return;
    this.snapshot = snapshot;
    const entries = this.#recovered.entries.filter(({ index }) => index > snapshot.meta.index);
    this.#recovered = { ...this.#recovered, snapshot: snapshot.meta, entries };
  }

  #install(meta: SnapshotMeta, pieces: readonly Uint8Array[]): void {
    this.snapshot = { meta, pieces };
    this.#recovered = { ...this.#recovered, snapshot: meta, entries: [] };
  }

  #append(entries: readonly Entry[]): void {
    const first = entries[0];
    if (first === undefined) return;
    const kept = this.#recovered.entries.filter(({ index }) => index < first.index);
    this.#recovered = {
      ...this.#recovered,
      entries: [...kept, ...entries.filter(({ index }) => index > this.#recovered.snapshot.index)],
    };
  }
}
