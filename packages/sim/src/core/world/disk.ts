import type { Done, HostDisk, ReceivedSnapshot } from "@leasehold/core/inner/host/ports.js";
import type { Recovered } from "@leasehold/core/inner/raft/api.js";
import type { Entry, Persist, SnapshotMeta } from "@leasehold/core/inner/raft/types.js";
import type { SnapshotToWrite } from "@leasehold/core/inner/replica/types.js";
import { greatest } from "leasehold/inner/common/lists.js";
import type { SimRandom } from "../../kit/random.js";

/** The duration of a snapshot, in writes to the log. */
const snapshotFactor = 20;

export interface StoredSnapshot {
  readonly meta: SnapshotMeta;
  readonly pieces: readonly Uint8Array[];
}

/** The content of a disk at its server's first start. */
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

/** The parts of the world that a disk uses. */
export interface DiskTiming {
  after(delayMs: number, body: () => void): void;
  /** The duration of one write; drawn for each write. */
  writeMs(): number;
}

/** Writes in order. A crash keeps finished writes, and perhaps a prefix of the next (a torn write). */
export class SimDisk implements HostDisk {
  readonly #timing: DiskTiming;
  #recovered: Recovered;
  /** Absent: the state before the first entry. */
  snapshot: StoredSnapshot | undefined;
  #writes: Write[] = [];
  /** Writes begun before a crash never finish. */
  #crashes = 0;

  constructor(recovered: Recovered, timing: DiskTiming) {
    this.#recovered = recovered;
    this.#timing = timing;
  }

  get recovered(): Recovered {
    return this.#recovered;
  }

  /** The index up to which the log has been replaced by a snapshot that is not on disk yet; 0 for none. */
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

  /** As in production, the pieces are made when the write ends; by then the state has changed further. */
  saveSnapshot({ meta, pieces }: SnapshotToWrite, _signal: AbortSignal, done: Done): void {
    this.#after(snapshotFactor * this.#timing.writeMs(), () => {
      this.#take({ meta, pieces: [...pieces] });
      done();
    });
  }

  /** Simulates a power failure: the pending write is lost, completely or in part. */
  crash(random: SimRandom): void {
    this.#crashes += 1;
    const [write] = this.#writes.splice(0);
    // A prefix of whole records survives. A torn record is cut off.
    if (write !== undefined && random.chance(0.5))
      this.#write(write, random.below(write.persist.entries.length + 3));
  }

  #after(delayMs: number, body: () => void): void {
    const crashes = this.#crashes;
    this.#timing.after(delayMs, () => {
      if (crashes === this.#crashes) body();
    });
  }

  /** The first records of a write, in the order of `Persist`: hard state, snapshot, entries. */
  #write({ persist, received }: Write, records: number): void {
    if (records > 0) this.#recovered = { ...this.#recovered, hardState: persist.hardState };
    if (records > 1 && persist.snapshot !== undefined) this.#install(persist.snapshot, received);
    if (records > 2) this.#append(persist.entries.slice(0, records - 2));
  }

  /** This server's own snapshot: the log before it may be dropped. */
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
