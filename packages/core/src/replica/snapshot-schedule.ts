import type { SnapshotMeta } from "../raft/types.js";
import { frozen, snapshotPieces } from "../state/snapshot.js";
import type { Context } from "./context.js";
import type { SnapshotToWrite } from "./types.js";

/** Decides when to write a snapshot of the state, after which earlier entries can be dropped. */
export class SnapshotSchedule {
  readonly #context: Context;
  #entries = 0;
  #bytes = 0;
  #isBeingWritten = false;
  #isDemanded = false;

  constructor(context: Context) {
    this.#context = context;
  }

  applied(bytes: number): void {
    this.#entries += 1;
    this.#bytes += bytes;
  }

  /** The leader sent a snapshot, which covers everything applied. */
  installed(): void {
    this.#entries = 0;
    this.#bytes = 0;
  }

  take(): SnapshotToWrite | undefined {
    const { appliedIndex, limits, raft, state } = this.#context;
    const dueBytes = Math.min(limits.snapshotBytesMax, Math.max(limits.snapshotBytes, state.bytes));
    if (this.#isDemanded && appliedIndex === raft.status().snapshotIndex) this.#isDemanded = false;
    const isDue = this.#isDemanded || this.#entries >= limits.snapshotEntries || this.#bytes >= dueBytes;
    if (!isDue || this.#isBeingWritten) return undefined;
    this.installed();
    this.#isDemanded = false;
    this.#isBeingWritten = true;
    return {
      meta: raft.snapshotMeta(appliedIndex),
      pieces: snapshotPieces(frozen(state), limits.snapshotPieceBytes),
    };
  }

  /** Requests a snapshot that covers everything applied by now. */
  demand(): void {
    this.#isDemanded = true;
  }

  written(meta: SnapshotMeta): void {
    this.#isBeingWritten = false;
    const { keepBytes, keepEntries } = this.#context.limits;
    this.#context.raft.compact(meta, keepEntries, keepBytes);
  }

  failed(): void {
    this.#isBeingWritten = false;
  }
}
