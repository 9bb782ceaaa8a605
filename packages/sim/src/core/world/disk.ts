import type { Done, HostDisk, ReceivedSnapshot } from "@leasehold/core/inner/host/ports.js";
import type { Recovered } from "@leasehold/core/inner/raft/api.js";
import type { Entry, Persist, SnapshotMeta } from "@leasehold/core/inner/raft/types.js";
import type { SnapshotToWrite } from "@leasehold/core/inner/replica/types.js";
import { greatest } from "leasehold/inner/common/lists.js";
import type { SimRandom } from "../../kit/random.js";

/** A snapshot takes so much longer than a write to the log. */
const snapshotFactor = 20;

export interface StoredSnapshot {
  readonly meta: SnapshotMeta;
  readonly pieces: readonly Uint8Array[];
}

/** What a disk has when its server starts for the first time. */
export interface FirstContent {
  readonly recovered: Recovered;
  /** Absent: the state before the first entry. */
  readonly snapshot: StoredSnapshot | undefined;
}

/** A write on its way to the disk. */
interface Write {
  readonly persist: Persist;
  /** With `persist.snapshot`: its content. */
  readonly received: ReceivedSnapshot | undefined;
  readonly done: Done;
}

/** What a disk needs of its world. */
export interface DiskTiming {
  after(delayMs: number, body: () => void): void;
  /** Of one write, drawn anew for each. */
  writeMs(): number;
}

/**
 * Writes in order. What survives a crash is what was finished, and perhaps a beginning of the next write (a
 * torn write).
 */
export class SimDisk implements HostDisk {
  readonly #timing: DiskTiming;
  #recovered: Recovered;
  /** Absent: the state before the first entry. */
  snapshot: StoredSnapshot | undefined;
  #writes: Write[] = [];
  /** What was begun before a crash is never finished. */
  #crashes = 0;

  constructor(recovered: Recovered, timing: DiskTiming) {
    this.#recovered = recovered;
    this.#timing = timing;
  }

  get recovered(): Recovered {
    return this.#recovered;
  }

  /** Up to where a snapshot has replaced the log, which is not on disk yet; 0 if none has. */
  get installingIndex(): number {
    return greatest(
      this.#writes.map(({ persist }) => persist.snapshot?.index ?? 0),
      0,
    );
  }

  persist(persist: Persist, received: ReceivedSnapshot | undefined, done: Done): void {
    this.#writes.push({ persist, received, done });
    this.#after(this.#timing.writeMs(), () => {
      const write = this.#writes.shift()!;
      this.#write(write, Infinity);
      write.done();
    });
  }

  /** The pieces are made when the write ends, as in production after the state has gone on. */
  saveSnapshot({ meta, pieces }: SnapshotToWrite, _signal: AbortSignal, done: Done): void {
    this.#after(snapshotFactor * this.#timing.writeMs(), () => {
      this.#take({ meta, pieces: [...pieces] });
      done();
    });
  }

  /** The power fails: what was being written is lost, or a part of it. */
  crash(random: SimRandom): void {
    this.#crashes += 1;
    const [write] = this.#writes.splice(0);
    // Whole records, from the first on, are there; a broken one is cut off.
    if (write !== undefined && random.chance(0.5))
      this.#write(write, random.below(write.persist.entries.length + 3));
  }

  #after(delayMs: number, body: () => void): void {
    const crashes = this.#crashes;
    this.#timing.after(delayMs, () => {
      if (crashes === this.#crashes) body();
    });
  }

  /** The first records of a write, in the order that `Persist` tells: hard state, snapshot, entries. */
  #write({ persist, received }: Write, records: number): void {
    if (records > 0) this.#recovered = { ...this.#recovered, hardState: persist.hardState };
    if (records > 1 && persist.snapshot !== undefined) this.#install(persist.snapshot, received);
    if (records > 2) this.#append(persist.entries.slice(0, records - 2));
  }

  /** A snapshot of this server's own: the log before it may go. */
  #take(snapshot: StoredSnapshot): void {
    if (snapshot.meta.index <= this.#recovered.snapshot.index) return;
    this.snapshot = snapshot;
    const entries = this.#recovered.entries.filter(({ index }) => index > snapshot.meta.index);
    this.#recovered = { ...this.#recovered, snapshot: snapshot.meta, entries };
  }

  #install(meta: SnapshotMeta, received: ReceivedSnapshot | undefined): void {
    if (received?.meta.index !== meta.index) throw new TypeError(`no content of a snapshot at ${meta.index}`);
    this.snapshot = { meta, pieces: received.pieces };
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
