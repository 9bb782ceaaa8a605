/**
 * Replicated files, as programs see them. Each file has a primary, elected by a lease; a write is
 * acknowledged when a majority of the nodes has it on disk.
 */

/** What calls take that go to other nodes. */
export interface FileCallOptions {
  /** Ends the wait. What was begun may still happen: for a change this is `FILE_UNCERTAIN`'s case, too. */
  readonly signal?: AbortSignal | undefined;
}

export interface OpenFileOptions extends FileCallOptions {
  /**
   * What to do when there is no such file, or there is one: `"never"` (default) rejects with
   * `FILE_NOT_FOUND`; `"missing"` creates it if there is none; `"always"` rejects with `FILE_EXISTS` if there
   * is one; `"replace"` empties one that is there, as `truncate(0)`.
   */
  readonly create?: "never" | "missing" | "always" | "replace" | undefined;
}

export interface ConditionOptions extends FileCallOptions {
  /** Rejects with `FILE_CHANGED`, and does nothing, unless the file has this {@link FileStat.version}. */
  readonly ifVersion?: string | undefined;
}

export interface FileStat {
  readonly path: string;
  /** In bytes. What was never written reads as zeros. */
  readonly size: number;
  /** Of the last change; another for each change, and never used again. For ETags and conditions. */
  readonly version: string;
  /** When the last change was made, ms since 1970 by the system clock of its primary: for people. */
  readonly modifiedMs: number;
}

export interface FileList {
  /** In the order of `<` on strings. */
  readonly files: readonly FileStat[];
  /** Give it as `after` for the rest. Absent when this is all. */
  readonly next?: string;
}

export interface ListFilesOptions extends FileCallOptions {
  /** Only paths behind this one. Default: from the first. */
  readonly after?: string | undefined;
  /** 1 to 1,000, default 1,000. Fewer may come, with {@link FileList.next}. */
  readonly limit?: number | undefined;
}

/**
 * An open file. It is a name with methods. As many as wanted may be open, on any node, and each operation
 * finds the primary of that moment. Nothing is lost without `close`.
 *
 * Operations on one file are linearizable, with one restriction: a call that covers several blocks and does
 * not succeed may have been done for some of them, each whole or not at all. Reads see only what a majority
 * has.
 *
 * Errors of all: `NO_QUORUM` when no majority of nodes answered in time, `FILE_DAMAGED`, `OVERLOADED`,
 * `CLOSED`, `UNAUTHENTICATED`; of changes also `STORE_FULL` (the primary's disk has no room) and
 * `FILE_UNCERTAIN` (no majority had it on disk in time, also because their disks are full): the change may
 * or may not have been done, or may still be done until the next successful operation on the file. With
 * any other error a change was not done. `FILE_NOT_FOUND` if the file was removed.
 */
export interface ReplicatedFile extends AsyncDisposable {
  readonly path: string;
  /** 1 byte to 4 MiB; calls that fill whole blocks read nothing before they write. */
  readonly blockSize: number;
  stat(options?: FileCallOptions): Promise<FileStat>;
  /**
   * Fewer bytes than asked for only at the end of the file.
   *
   * @param offset 0 to 2^53 - 1, in bytes
   * @param length 0 to 4 MiB
   */
  read(offset: number, length: number, options?: FileCallOptions): Promise<Uint8Array>;
  /**
   * On disk at a majority when it resolves. Beyond the end the file grows, and what lies between is zeros.
   *
   * @param bytes 0 to 4 MiB; must not be changed until the promise settles
   */
  write(offset: number, bytes: Uint8Array, options?: FileCallOptions): Promise<void>;
  /** Writes at the end; two that append at the same time do not overwrite each other. Answers where. */
  append(bytes: Uint8Array, options?: FileCallOptions): Promise<number>;
  /** Cuts the file, or lets it grow by zeros. */
  truncate(size: number, options?: FileCallOptions): Promise<void>;
  /**
   * Resolves when all nodes that can be reached now have all of the file; a write does not wait for the
   * slowest. How many have it is the answer.
   */
  sync(options?: FileCallOptions): Promise<number>;
  close(): Promise<void>;
}

/** Replicated files, seen from one of their nodes. Any node takes any call, and asks the primary. */
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
   * Files whose paths begin with `prefix` (`""`: all; `"reports/"`: those in that folder and below).
   * A file whose creation or removal was acknowledged before the call is shown so; sizes and versions are
   * those of some moment not before the last change that was acknowledged before the call.
   */
  list(prefix: string, options?: ListFilesOptions): Promise<FileList>;
  /** @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_CHANGED`, and what {@link ReplicatedFile} names. */
  remove(path: string, options?: ConditionOptions): Promise<void>;
  /**
   * Copies and then removes, as the two files may have primaries on two nodes. **Not atomic**: the target
   * (which is replaced) is seen growing, and after a failure both may be there; never neither. If
   * the source changes meanwhile it stays, and the call rejects with `FILE_CHANGED`.
   */
  rename(from: string, to: string, options?: FileCallOptions): Promise<void>;
  /** As {@link rename}, without removing. */
  copy(from: string, to: string, options?: FileCallOptions): Promise<void>;
  /** What this node knows, without asking others. */
  status(): FilesStatus;
  /** Gives its files' leases back and stops to serve. Idempotent. */
  close(): Promise<void>;
}

export interface FilesStatus {
  readonly node: string;
  /**
   * `serving`; `waiting`: the node has an empty disk and cannot yet join (a new cluster begins when all nodes
   * are there, one that was replaced needs a majority of the others); `rebuilding`: it serves, and takes
   * over the files that its disk had lost.
   */
  readonly state: "waiting" | "rebuilding" | "serving" | "closed";
  /** Files that are still to be taken over and how many there were, while `rebuilding`. */
  readonly rebuilding?: { readonly left: number; readonly total: number };
  /** Each other node: whether it answered last, and how many of the files whose primary is here it lacks. */
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
    /** Calls that were handed to the primary at another node. */
    readonly forwarded: number;
    /** Tenures that began with a reset. */
    readonly resets: number;
    /** Blocks that the scrub has read, found damaged, and repaired from another node. */
    readonly scrubbed: number;
    readonly damaged: number;
    readonly repaired: number;
  };
}
