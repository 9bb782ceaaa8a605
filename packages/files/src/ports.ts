/**
 * The storage interface of a node of replicated files. A directory can implement it; `memory-store.ts` does
 * so in memory for tests and simulations.
 */

/** The facts about a block that are known without reading its content. */
export interface BlockEntry {
  /** 0 is the first block of the file. */
  readonly index: number;
  /**
   * The text that was written with the block. Undefined if it cannot be read: the block exists, and its
   * version is unknown.
   */
  readonly tag: string | undefined;
}

/** A block as it was written. */
export interface StoredBlock {
  readonly tag: string;
  readonly bytes: Uint8Array;
}

/**
 * The blocks and records of one node. The store knows nothing of replication: records, metadata and tags are
 * opaque texts.
 *
 * **Atomic.** `writeNode`, `writeMeta`, `removeFile`, `writeBlock` and `removeBlock` take effect completely
 * or not at all, even when the process or the machine crashes: afterwards the store has the old content or
 * the new one, each with its tag.
 *
 * **Durable.** `writeNode`, `writeMeta` and `removeFile` are durable when their promise resolves.
 * `writeBlock` and `removeBlock` are durable when a later `sync` of the same file has resolved. Before that,
 * a crash of the machine may lose or keep each of them independently, in any order; reads see them at once.
 *
 * **Checked.** Reads never return content that was not written: every read verifies a checksum over content,
 * tag, file and index.
 *
 * **Concurrency.** Calls for different files, and for different blocks of one file, may run at the same time.
 * The caller never has two concurrent writes of one block, or of one file's metadata.
 *
 * The caller has checked the paths of files: 1 to 480 bytes of UTF-8, segments separated by `/`, no segment
 * empty, `.` or `..`, no control characters. A segment may be longer than a file system's names, and two may
 * differ only in case. A file and another one below it (as if the first were a folder) may both exist.
 *
 * Errors are `LeaseholdError`: `STORE_CORRUPT` where documented below, `STORE_FULL` from a write for which
 * there is no room (nothing has changed), `CLOSED` after `close`, `DISK_FAILED` for all other failures of the
 * disk: the operation may or may not have taken effect.
 */
export interface BlockStore {
  /**
   * The node's own record; only an empty disk has none.
   * @throws LeaseholdError `STORE_CORRUPT` if it cannot be read.
   */
  readNode(): Promise<string | undefined>;
  /** At most 64 KiB. Durable when it resolves. */
  writeNode(record: string): Promise<void>;
  /**
   * A file's metadata; undefined for a file that was never written.
   * @throws LeaseholdError `STORE_CORRUPT` if it cannot be read.
   */
  readMeta(path: string): Promise<string | undefined>;
  /** At most 4 KiB. Durable when it resolves. Blocks may be written only after the first metadata. */
  writeMeta(path: string, meta: string): Promise<void>;
  /**
   * Gives a file its first metadata, which its next `sync` makes durable. Does nothing if it has metadata.
   */
  create(path: string, meta: string): Promise<void>;
  /**
   * Paths with metadata (readable or not) and this prefix, in the order of JavaScript's `<` on strings: the
   * first `limit` after `after`. Fewer than `limit` means that there are no more.
   */
  listFiles(prefix: string, after: string, limit: number): Promise<string[]>;
  /**
   * All blocks of a file in the order of their indices. Reads no content, so 40,000 blocks take milliseconds.
   */
  listBlocks(path: string): Promise<BlockEntry[]>;
  /**
   * Reads a block; undefined if it doesn't exist.
   * @throws LeaseholdError `STORE_CORRUPT` if it is damaged. A damaged block isn't removed, and is still
   *   listed.
   */
  readBlock(path: string, index: number): Promise<StoredBlock | undefined>;
  /**
   * Replaces a block.
   *
   * @param tag 1 to 80 characters of `0-9a-z.`
   * @param bytes 0 to 4 MiB; the store does not use the array after the promise resolves
   */
  writeBlock(path: string, index: number, tag: string, bytes: Uint8Array): Promise<void>;
  /** Does nothing if the block does not exist. */
  removeBlock(path: string, index: number): Promise<void>;
  /**
   * Removes a file with its metadata and blocks; does nothing if it does not exist. Durable when it resolves.
   * Meanwhile the caller runs no other operation on the file except reads.
   */
  removeFile(path: string): Promise<void>;
  /** Makes earlier writes and removals of this file's blocks durable. */
  sync(path: string): Promise<void>;
  /**
   * Whether the store's reserve stays free after writing this many more bytes. A node asks before it writes
   * programs' data, so that metadata and repairs find room on a full disk. This is a hint: a later write may
   * still find the disk full.
   */
  hasRoom(bytes: number): Promise<boolean>;
  /** Waits for pending operations. Idempotent. */
  close(): Promise<void>;
}
