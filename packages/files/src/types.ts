/**
 * Replicated files, as programs see them. Each file has a primary, elected by a lease; a write is
 * acknowledged when a majority of the nodes has it on disk.
 */

/** Options of calls that go to other nodes. */
export interface FileCallOptions {
  /** Ends the wait. The operation may still take effect: for a change the result is `FILE_UNCERTAIN`. */
  readonly signal?: AbortSignal | undefined;
}

export interface OpenFileOptions extends FileCallOptions {
  /**
   * Whether to create the file: `"never"` (default) rejects with `FILE_NOT_FOUND` if it does not exist;
   * `"missing"` creates it if it does not exist; `"always"` rejects with `FILE_EXISTS` if it exists;
   * `"replace"` creates it, or truncates it to 0.
   */
  readonly create?: "never" | "missing" | "always" | "replace" | undefined;
}

export interface ConditionOptions extends FileCallOptions {
  /** Rejects with `FILE_CHANGED`, and does nothing, unless the file has this {@link FileStat.version}. */
  readonly ifVersion?: string | undefined;
}

export interface FileStat {
  readonly path: string;
  /** In bytes. Ranges that were never written read as zeros. */
  readonly size: number;
  /** The version: new for each change, and never used again. For ETags and conditions. */
  readonly version: string;
  /** The time of the last change, ms since 1970 by the system clock of its primary: for humans. */
  readonly modifiedMs: number;
}

export interface FileList {
  /** In the order of `<` on strings. */
  readonly files: readonly FileStat[];
  /** Pass it as `after` to get the rest. Absent on the last page. */
  readonly next?: string;
}

export interface ListFilesOptions extends FileCallOptions {
  /** Only paths after this one. Default: from the first. */
  readonly after?: string | undefined;
  /** 1 to 1,000, default 1,000. A page may have fewer, with {@link FileList.next}. */
  readonly limit?: number | undefined;
}

/**
 * An open file: a path with methods. Any number may be open, on any node; each operation goes to the primary
 * of that moment. Nothing is lost without `close`.
 *
 * Operations on one file are linearizable, with one restriction: a call that covers several blocks and fails
 * may have been done for some of them, each whole or not at all. Reads return only data that a majority has.
 *
 * Errors of all methods: `NO_QUORUM` when no majority of nodes answered in time, `FILE_DAMAGED`,
 * `OVERLOADED`, `CLOSED`, `UNAUTHENTICATED`; of changes also `STORE_FULL` (the primary's disk has no room)
 * and `FILE_UNCERTAIN` (no majority had it on disk in time, also because disks are full): the change may or
 * may not have been done, or may still be done until the next successful operation on the file. With any
 * other error a change was not done. `FILE_NOT_FOUND` if the file was removed.
 */
export interface ReplicatedFile extends AsyncDisposable {
  readonly path: string;
  /** 1 byte to 4 MiB; calls that fill whole blocks read nothing before they write. */
  readonly blockSize: number;
  stat(options?: FileCallOptions): Promise<FileStat>;
  /**
   * Returns fewer bytes than requested only at the end of the file.
   *
   * @param offset 0 to 2^53 - 1, in bytes
   * @param length 0 to 4 MiB
   */
  read(offset: number, length: number, options?: FileCallOptions): Promise<Uint8Array>;
  /**
   * The data is on disk at a majority when it resolves. A write beyond the end grows the file and fills the
   * gap with zeros.
   *
   * @param bytes 0 to 4 MiB; must not be changed until the promise settles
   */
  write(offset: number, bytes: Uint8Array, options?: FileCallOptions): Promise<void>;
  /** Writes at the end; concurrent appends do not overwrite each other. Resolves with the offset. */
  append(bytes: Uint8Array, options?: FileCallOptions): Promise<number>;
  /** Truncates the file, or extends it with zeros. */
  truncate(size: number, options?: FileCallOptions): Promise<void>;
  /**
   * Resolves with the number of nodes that have all of the file, when all nodes that can be reached have it;
   * a write does not wait for the slowest.
   */
  sync(options?: FileCallOptions): Promise<number>;
  close(): Promise<void>;
}

/** Replicated files, from one of their nodes. Any node accepts any call and forwards it to the primary. */
export interface Files extends AsyncDisposable {
  /**
   * @param path 1 to 480 bytes of UTF-8, segments divided by `/`, none of them empty, `.` or `..`, no control
   *   characters
   * @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_EXISTS`, `INVALID_PATH`, and what {@link ReplicatedFile}
   *   names.
   */
  open(path: string, options?: OpenFileOptions): Promise<ReplicatedFile>;
  /** As {@link ReplicatedFile.stat}, without opening. */
  stat(path: string, options?: FileCallOptions): Promise<FileStat>;
  /**
   * Files whose paths begin with `prefix` (`""`: all; `"reports/"`: those in that folder and below). The list
   * shows every creation and removal that was acknowledged before the call; sizes and versions are those of a
   * moment not before the last change that was acknowledged before the call.
   */
  list(prefix: string, options?: ListFilesOptions): Promise<FileList>;
  /** @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_CHANGED`, and what {@link ReplicatedFile} names. */
  remove(path: string, options?: ConditionOptions): Promise<void>;
  /**
   * Copies and then removes, as the two files may have primaries on two nodes. **Not atomic**: readers see
   * the target (which is replaced) grow, and after a failure both files may exist; never neither. If the
   * source changes meanwhile it stays, and the call rejects with `FILE_CHANGED`.
   */
  rename(from: string, to: string, options?: FileCallOptions): Promise<void>;
  /** As {@link rename}, without removing. */
  copy(from: string, to: string, options?: FileCallOptions): Promise<void>;
  /** The state of this node, without asking others. */
  status(): FilesStatus;
  /** Releases its files' leases and stops serving. Idempotent. */
  close(): Promise<void>;
}

export interface FilesStatus {
  readonly node: string;
  /**
   * `serving`; `waiting`: the node has an empty disk and cannot join yet (a new cluster begins when all nodes
   * are present, a replaced disk needs a majority of the others); `rebuilding`: it serves, and copies the
   * files that its disk had lost.
   */
  readonly state: "waiting" | "rebuilding" | "serving" | "closed";
  /** Files that are left to copy and their total, while `rebuilding`. */
  readonly rebuilding?: { readonly left: number; readonly total: number };
  /**
   * Each other node: whether it answered last, and how many of the files whose primary is here are incomplete
   * there.
   */
  readonly peers: readonly {
    readonly node: string;
    readonly address: string;
    readonly reachable: boolean;
    readonly behind: number;
  }[];
  /** Files whose primary is here, with their epochs: the first 1,000. */
  readonly primaries: readonly { readonly path: string; readonly epoch: string }[];
  readonly counters: {
    readonly reads: number;
    readonly writes: number;
    /** Calls that were forwarded to the primary at another node. */
    readonly forwarded: number;
    /** Tenures that began with a reset. */
    readonly resets: number;
    /** Blocks that the scrub read, found damaged, and repaired from another node. */
    readonly scrubbed: number;
    readonly damaged: number;
    readonly repaired: number;
  };
}
