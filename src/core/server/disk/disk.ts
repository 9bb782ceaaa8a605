import type { Journal } from "../../journal/journal.js";
import type { Snapshots } from "../../journal/snapshots.js";
import type { Persist, SnapshotMeta } from "../../raft/types.js";
import type { SnapshotToWrite } from "../../replica/types.js";

/** The content of a snapshot that a leader has sent. */
export interface ReceivedSnapshot {
  readonly meta: SnapshotMeta;
  readonly pieces: readonly Uint8Array[];
}

/** What a server writes: its log, and snapshots. All that is written to the log becomes durable in the order of the calls. */
export class Disk {
  readonly #journal: Journal;
  readonly #snapshots: Snapshots;
  /** A snapshot that is being installed: everything else waits for it. */
  #installing: Promise<void> | undefined;
  /** The log goes on after this. */
  #base: number;

  constructor(journal: Journal, snapshots: Snapshots, base: number) {
    this.#journal = journal;
    this.#snapshots = snapshots;
    this.#base = base;
  }

  /**
   * Resolves when it is on disk.
   *
   * @param received the content of `persist.snapshot`
   * @throws LeaseholdError `DISK_FAILED`
   */
  persist(persist: Persist, received: ReceivedSnapshot | undefined): Promise<void> {
    const { entries, hardState, snapshot } = persist;
    if (snapshot === undefined) return this.#inOrder(() => this.#journal.append({ entries, hardState }));
    const installing = this.#inOrder(async () => {
      await this.#snapshots.save(snapshot, received?.pieces ?? []);
      this.#base = snapshot.index;
      await this.#journal.append({ installed: snapshot, entries, hardState });
      await this.#journal.removeUpTo(snapshot.index);
    });
    const settled = installing.then(
      () => undefined,
      () => undefined,
    );
    this.#installing = settled;
    void settled.then(() => {
      if (this.#installing === settled) this.#installing = undefined;
    });
    return installing;
  }

  /** Writes a snapshot of the own state, beside the log's own writes, and then forgets the log before it. */
  async saveSnapshot({ meta, pieces }: SnapshotToWrite): Promise<void> {
    await this.#snapshots.save(meta, pieces);
    // A leader's snapshot that came meanwhile is newer.
    if (meta.index <= this.#base) return;
    this.#base = meta.index;
    await this.#inOrder(() => this.#journal.append({ compacted: meta }));
    await this.#journal.removeUpTo(meta.index);
  }

  #inOrder(write: () => Promise<void>): Promise<void> {
    return this.#installing === undefined ? write() : this.#installing.then(write);
  }
}
