import { type FileHandle, unlink } from "node:fs/promises";
import { join } from "node:path";
import { LeaseholdError } from "leasehold/common";
import type { Entry, HardState } from "../raft/types.js";
import { diskError, ownFolder, syncFolder } from "./files.js";
import { type FoundJournal, type JournalContent, type OldSegment, readJournal } from "./read-journal.js";
import { type JournalRecord, type LogPosition, writeRecord } from "./records.js";
import { layBatch } from "leasehold/journal";
import {
  createSegment,
  openSegment,
  segmentHeaderBytes,
  segmentName,
  syncSegment,
  writeAll,
} from "./segment.js";

/** Size beyond which a new segment begins. Compaction removes whole segments. */
const segmentBytesDefault = 64 * 1024 * 1024;

/**
 * Zeros written ahead of the batches. A write into them leaves the file's size unchanged, so its fdatasync
 * commits no metadata, which saves a third of the time (ext4 on a virtual disk). It also makes a crash
 * distinguishable from damage: each sector is either as written, or zeros.
 */
const roomBytes = 1024 * 1024;

/**
 * Durable as a whole; its parts are written in this order. If several batches are written together, a crash
 * leaves a prefix of them. The term comes first: a log must not have entries of a term unknown to this
 * server.
 */
export interface JournalBatch {
  readonly hardState?: HardState | undefined;
  /** A leader's snapshot that replaces the log; its content is already on disk. */
  readonly installed?: LogPosition | undefined;
  /**
   * A snapshot of this server's own state. Its content is already on disk, and its index exceeds that of the
   * one before.
   */
  readonly compacted?: LogPosition | undefined;
  readonly entries?: readonly Entry[];
}

export interface JournalOptions {
  readonly segmentBytes?: number;
}

interface Waiting {
  readonly batch: JournalBatch;
  readonly written: () => void;
  readonly failed: (error: LeaseholdError) => void;
}

/**
 * The write-ahead log of one server: what Raft must have on disk before it sends anything that depends on it.
 * Everything queued when the disk becomes free is written at once (group commit). After a failed write
 * nothing more is written, since it is unknown what that write left on disk.
 */
export class Journal {
  readonly #folder: string;
  readonly #segmentBytes: number;
  readonly #waiting: Waiting[] = [];
  readonly #old: OldSegment[];
  #file: FileHandle;
  #sequence: number;
  #bytes: number;
  /** Number of writes in the current segment. */
  #written: number;
  /** The file's size: zeros from `#bytes` on. */
  #roomEnd: number;
  /** The next write's checksum continues from this. */
  #chain: number;
  /** The greatest index of an entry in the current segment. */
  #lastIndex: number;
  /** The hard state and the base are repeated in each segment, as earlier segments will be removed. */
  #hardState: HardState | undefined;
  #base: LogPosition;
  /**
   * Whether this process has repeated them in the current segment. An earlier process may only have created
   * the file.
   */
  #isHeadWritten = false;
  #draining: Promise<void> | undefined;
  #failure: LeaseholdError | undefined;
  /** Number of batches written, and of syncs. */
  batches = 0;
  syncs = 0;

  private constructor(folder: string, file: FileHandle, found: FoundJournal, options: JournalOptions) {
    this.#folder = folder;
    this.#segmentBytes = options.segmentBytes ?? segmentBytesDefault;
    this.#old = found.old;
    this.#file = file;
    this.#sequence = found.sequence;
    this.#bytes = found.bytes;
    this.#written = found.written;
    this.#roomEnd = found.bytes;
    this.#chain = found.chain;
    this.#lastIndex = found.lastIndex;
    this.#hardState = found.content.hardState;
    this.#base = found.content.base;
  }

  /**
   * Reads the journal, removes a write at the end that a crash cut off, and continues after it. Creates a
   * missing folder.
   *
   * @throws LeaseholdError `LOG_CORRUPT`, `VERSION_MISMATCH`, `DISK_FAILED`
   */
  static async open(
    folder: string,
    options: JournalOptions = {},
  ): Promise<{ journal: Journal; content: JournalContent }> {
    try {
      await ownFolder(folder);
      const found = await readJournal(folder);
      const before = found.old.at(-1);
      if (found.bytes === 0 && before !== undefined) await syncSegment(folder, before.sequence);
      const file =
        found.bytes === 0
          ? await createSegment(folder, found.sequence, found.chain)
          : await openSegment(folder, found.sequence, found.bytes, found.last);
      const bytes = Math.max(found.bytes, segmentHeaderBytes);
      return { journal: new Journal(folder, file, { ...found, bytes }, options), content: found.content };
    } catch (error) {
      if (error instanceof LeaseholdError) throw error;
      throw diskError(`the journal in ${folder} cannot be opened`, error);
    }
  }

  /**
   * Resolves when the batch and everything appended before it are on disk.
   *
   * @throws LeaseholdError `DISK_FAILED`; from then on every call does
   */
  append(batch: JournalBatch): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ batch, written: resolve, failed: reject });
      this.#draining ??= this.#drain();
    });
  }

  /** Removes segments without entries after `index`. Call it when `compacted` or `installed` is on disk. */
  async removeUpTo(index: number): Promise<void> {
    const before = this.#old.findIndex(({ lastIndex }) => lastIndex > index);
    const gone = this.#old.splice(0, before === -1 ? this.#old.length : before);
    try {
      for (const { sequence } of gone) await unlink(join(this.#folder, segmentName(sequence)));
      if (gone.length > 0) await syncFolder(this.#folder);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Waits for writes in flight, and truncates unused room. Idempotent. */
  async close(): Promise<void> {
    await this.#draining;
    if (this.#failure?.code === "CLOSED") return;
    // After a failure a record may follow, durable or not: don't cut it off.
    if (this.#failure === undefined) await this.#file.truncate(this.#bytes);
    this.#failure = new LeaseholdError("CLOSED", "the journal has been closed");
    await this.#file.close();
  }

  async #drain(): Promise<void> {
    // Appends of the same turn join the first.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const together = this.#waiting.splice(0);
      try {
        await this.#write(together.map(({ batch }) => batch));
      } catch (error) {
        const failure = this.#fail(error);
        for (const { failed } of [...together, ...this.#waiting.splice(0)]) failed(failure);
        break;
      }
      for (const { written } of together) written();
    }
    this.#draining = undefined;
  }

  async #write(batches: readonly JournalBatch[]): Promise<void> {
    const parts: Uint8Array[] = [];
    const add = (record: JournalRecord) => writeRecord(parts, record);
    if (this.#bytes >= this.#segmentBytes) await this.#beginSegment();
    if (!this.#isHeadWritten) {
      add({ kind: "compacted", ...this.#base });
      if (this.#hardState !== undefined) add({ kind: "hard-state", hardState: this.#hardState });
    }
    for (const { hardState, installed, compacted, entries = [] } of batches) {
      if (hardState !== undefined) add({ kind: "hard-state", hardState });
      this.#hardState = hardState ?? this.#hardState;
      if (installed !== undefined) add({ kind: "installed", index: installed.index, term: installed.term });
      if (compacted !== undefined) add({ kind: "compacted", index: compacted.index, term: compacted.term });
      this.#base = installed ?? compacted ?? this.#base;
      for (const entry of entries) add({ kind: "entry", entry });
      this.#lastIndex = Math.max(this.#lastIndex, entries.at(-1)?.index ?? 0);
    }
    const { bytes, checksum } = layBatch(parts, this.#chain, this.#bytes, this.#written + 1);
    const end = this.#bytes + bytes.length;
    if (end > this.#roomEnd) await this.#makeRoom(end + Math.min(roomBytes, this.#segmentBytes));
    await writeAll(this.#file, bytes, this.#bytes);
    this.#chain = checksum;
    this.#isHeadWritten = true;
    this.#written += 1;
    this.#bytes = end;
    this.syncs += 1;
    this.batches += batches.length;
  }

  async #makeRoom(end: number): Promise<void> {
    await writeAll(this.#file, Buffer.alloc(end - this.#roomEnd), this.#roomEnd);
    this.#roomEnd = end;
  }

  /** The previous segment is complete and on disk by now. */
  async #beginSegment(): Promise<void> {
    const before = this.#file;
    this.#file = await createSegment(this.#folder, this.#sequence + 1, this.#chain);
    this.#old.push({ sequence: this.#sequence, lastIndex: this.#lastIndex });
    this.#sequence += 1;
    this.#bytes = segmentHeaderBytes;
    this.#written = 0;
    this.#roomEnd = segmentHeaderBytes;
    this.#lastIndex = 0;
    this.#isHeadWritten = false;
    await before.close();
  }

  #fail(error: unknown): LeaseholdError {
    this.#failure ??=
      error instanceof LeaseholdError
        ? error
        : diskError(`the journal in ${this.#folder} cannot be written`, error);
    return this.#failure;
  }
}
