import type { ReceivedSnapshot } from "../../host/ports.js";
import type { Journal } from "../../journal/journal.js";
import type { Snapshots } from "../../journal/snapshots.js";
import type { Persist } from "../../raft/types.js";
import type { SnapshotToWrite } from "../../replica/types.js";
import { batchesInTurns } from "../accounts/turns.js";

/**
 * A server's writes: its log, and snapshots. Writes to the log become durable in the order of the calls.
 * After a failed write none follows, since each depends on those before it.
 */
export class Disk {
  readonly #journal: Journal;
  readonly #snapshots: Snapshots;
  /**
   * The last step that other writes wait for: an installation, after which the log continues. If it failed,
   * it stays rejected.
   */
  #installing: Promise<void> | undefined;
  /** The log begins after this index. */
  #base: number;

  constructor(journal: Journal, snapshots: Snapshots, base: number) {
    this.#journal = journal;
    this.#snapshots = snapshots;
    this.#base = base;
  }

  /**
   * Resolves when the write is on disk.
   *
   * @param received the content of `persist.snapshot`
   * @throws LeaseholdError `DISK_FAILED`, and then for every later call; TypeError if the snapshot's content
   *   is missing
   */
  persist(persist: Persist, received: ReceivedSnapshot | undefined): Promise<void> {
    const { entries, hardState, snapshot } = persist;
    if (snapshot === undefined) return this.#inOrder(() => this.#journal.append({ entries, hardState }));
    const installing = this.#inOrder(async () => {
      if (received?.meta.index !== snapshot.index)
        throw new TypeError(`a snapshot at ${snapshot.index} cannot be written without its content`);
      await this.#snapshots.save(snapshot, batchesInTurns(received.pieces));
      await this.#journal.append({ installed: snapshot, entries, hardState });
      await this.#goOnFrom(snapshot.index);
    });
    this.#installing = installing;
    installing.then(
      () => {
        if (this.#installing === installing) this.#installing = undefined;
      },
      () => undefined,
    );
    return installing;
  }

  /**
   * Writes a snapshot of this server's own state, concurrently with writes to the log, and then drops the log
   * before it.
   *
   * @param signal aborts the snapshot, which then leaves nothing
   */
  async saveSnapshot({ meta, pieces }: SnapshotToWrite, signal?: AbortSignal): Promise<void> {
    await this.#snapshots.save(meta, batchesInTurns(pieces, signal));
    await this.#inOrder(async () => {
      // A leader's snapshot that arrived meanwhile is newer.
      if (meta.index <= this.#base) return;
      await this.#journal.append({ compacted: meta });
      await this.#goOnFrom(meta.index);
    });
  }

  /** The journal durably continues from that snapshot: only then is everything before it obsolete. */
  async #goOnFrom(index: number): Promise<void> {
    if (index <= this.#base) return;
    this.#base = index;
    await this.#journal.removeUpTo(index);
    await this.#snapshots.removeBefore(index);
  }

  #inOrder(write: () => Promise<void>): Promise<void> {
    return this.#installing === undefined ? write() : this.#installing.then(write);
  }
}
