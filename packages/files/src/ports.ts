/**
 * What replicated files need of one node's disk. A directory can be one; `memory-store.ts` has it in
 * memory for tests and simulations.
 */

/** What is known of a block without reading its content. */
export interface BlockEntry {
  /** 0 is the first block of the file. */
  readonly index: number;
  /**
   * The text that was written with the block. Undefined if it cannot be read: there is a block, and what
   * it was is not known.
   */
  readonly tag: string | undefined;
}

/** A block as it was written. */
export interface StoredBlock {
  readonly tag: string;
  readonly bytes: Uint8Array;
}

/**
 * The blocks and records of one node. It knows nothing of replication: records, metadata and tags are texts
 * that it keeps and does not read.
 *
 * **Atomic.** `writeNode`, `writeMeta`, `writeBlock` and `removeBlock` take effect as a whole or not at all,
 * also when the process or the machine dies meanwhile: afterwards the old content is there or the new one,
 * each with its tag.
 *
 * **Durable.** `writeNode` and `writeMeta` are durable when their promise resolves. `writeBlock` and
 * `removeBlock` are durable when a later `sync` of the same file has resolved. Before that each of them may
 * be lost or kept by itself, in any order, if the machine dies; they are visible to reads at once.
 *
 * **Checked.** Content that is not what was written is never returned: every read checks a checksum over
 * content, tag, file and index.
 *
 * **Concurrency.** Calls for different files, and for different blocks of one file, may run at the same
 * time. The caller never has two writes of one block, or of one file's metadata, under way together.
 *
 * Paths of files have been checked by the caller: 1 to 480 bytes of UTF-8, segments divided by `/`, none of
 * them empty or a dot or two, no control characters. A segment may be longer than a file system's names
 * are and differ from another by case only; a file and another below it (as if it were its folder) may both
 * exist.
 *
 * Errors are `LeaseholdError`: `STORE_CORRUPT` where it is named below, `STORE_FULL` from a write without
 * room (nothing has changed then), `CLOSED` after `close`, `DISK_FAILED` for everything else that the disk
 * refuses: it may or may not have taken effect.
 */
export interface BlockStore {
  /**
   * The node's own record: what tells a disk that has been in use from an empty one. Undefined on an empty
   * disk, and only there.
   *
   * @throws LeaseholdError `STORE_CORRUPT` if there is one that cannot be read.
   */
  readNode(): Promise<string | undefined>;
  /** At most 64 KiB. Durable when it resolves. */
  writeNode(record: string): Promise<void>;
  /**
   * A file's metadata, undefined for a file that was never written.
   *
   * @throws LeaseholdError `STORE_CORRUPT` if there is some that cannot be read.
   */
  readMeta(path: string): Promise<string | undefined>;
  /** At most 4 KiB. Durable when it resolves. Blocks may be written only after the first metadata. */
  writeMeta(path: string, meta: string): Promise<void>;
  /**
   * Paths that have metadata (readable or not) and begin with `prefix`, in the order of `<` on strings of
   * JavaScript: the first `limit` after `after`. Less than `limit` says that there are no more.
   */
  listFiles(prefix: string, after: string, limit: number): Promise<string[]>;
  /** All blocks of a file in the order of their indices. Reads no content: 40,000 blocks take moments. */
  listBlocks(path: string): Promise<BlockEntry[]>;
  /**
   * Undefined if there is no such block.
   *
   * @throws LeaseholdError `STORE_CORRUPT` if it is not what was written. It stays, and is listed.
   */
  readBlock(path: string, index: number): Promise<StoredBlock | undefined>;
  /**
   * Replaces a block.
   *
   * @param tag 1 to 80 characters of `0-9a-z.`
   * @param bytes 0 to 4 MiB; the store has done with the array when the promise resolves
   */
  writeBlock(path: string, index: number, tag: string, bytes: Uint8Array): Promise<void>;
  /** Nothing happens if there is no such block. */
  removeBlock(path: string, index: number): Promise<void>;
  /** Makes durable what was written and removed in this file before the call. */
  sync(path: string): Promise<void>;
  /**
   * Whether so many bytes more leave the store its reserve. Asked before data of programs is written, so
   * that metadata and repairs still find room on a disk that is full. A hint: a later write may find it full.
   */
  hasRoom(bytes: number): Promise<boolean>;
  /** Waits for what is under way. Idempotent. */
  close(): Promise<void>;
}
