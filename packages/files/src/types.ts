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
  /** Rejects with `FILE_CHANGED` and does nothing unless the file has this {@link FileStat.version}. */
  readonly ifVersion?: string | undefined;
}

/** Strings stored with a path alongside its content, keyed by name. */
export type Attributes = Readonly<Record<string, string>>;

/** Attributes to set; null removes one. The path's other attributes stay. */
export type AttributeChanges = Readonly<Record<string, string | null>>;

export interface TouchOptions extends ConditionOptions {
  /** The new {@link FileStat.modifiedMs}: an integer that a `Date` can represent. Not for folders. */
  readonly modifiedMs?: number | undefined;
  readonly attributes?: AttributeChanges | undefined;
}

export interface PutOptions extends ConditionOptions {
  /** Rejects with `FILE_EXISTS` if the path already has a file. Default false. */
  readonly ifMissing?: boolean | undefined;
  /**
   * Whether to create missing folders above the path. Default true; if false, rejects with `FILE_NOT_FOUND`.
   */
  readonly makeFolders?: boolean | undefined;
  /** The size, if known: an upload that would exceed a quota is then refused before any bytes are sent. */
  readonly size?: number | undefined;
  /**
   * Called once before the first byte is read, with whether the path has a file. If it rejects, `put` rejects
   * with the same error and nothing has changed.
   */
  readonly accept?: ((existed: boolean) => Promise<void>) | undefined;
  /** The file's {@link FileStat.modifiedMs}: an integer that a `Date` can represent. Default: now. */
  readonly modifiedMs?: number | undefined;
  /**
   * Attribute changes made together with the change of content. A function is called after all bytes have
   * been read.
   */
  readonly attributes?: AttributeChanges | (() => AttributeChanges) | undefined;
}

export interface ComposeOptions extends Omit<PutOptions, "accept"> {
  readonly attributes?: AttributeChanges | undefined;
}

export interface FolderOptions extends Pick<PutOptions, "makeFolders" | "signal"> {
  readonly attributes?: AttributeChanges | undefined;
}

export interface RemoveOptions extends ConditionOptions {
  /**
   * Whether to remove a folder that isn't empty. `true`: with everything in it. `"folders"`: with the folders
   * in it; `FILE_EXISTS` if it has a file at any depth, or more than 8,000 folders. Default false:
   * `FILE_EXISTS` if it contains anything.
   */
  readonly recursive?: boolean | "folders" | undefined;
  /** Also removes parent folders below this one that become empty and have no attributes. */
  readonly pruneIn?: string | undefined;
}

export interface MoveOptions extends ConditionOptions {
  /** What may be replaced at the target. By default a file, but not a folder. */
  readonly over?: "nothing" | "file" | "anything" | undefined;
  /**
   * Whether to create missing folders above the target. Default true; if false, rejects with
   * `FILE_NOT_FOUND`.
   */
  readonly makeFolders?: boolean | undefined;
  /** Changes to the attributes that the target gets from the source. */
  readonly attributes?: AttributeChanges | undefined;
}

export interface CopyOptions extends MoveOptions {
  /** For a folder: whether to copy everything in it, at most 8,000 names. Default true. */
  readonly deep?: boolean | undefined;
}

export interface FileStat {
  readonly path: string;
  /** In bytes. Ranges that were never written read as zeros. */
  readonly size: number;
  /** The version: every change sets a new one, and none is ever reused. For ETags and conditions. */
  readonly version: string;
  /**
   * The time of the last change, ms since 1970: by the system clock of the file's primary, or as set by the
   * client. Meant for humans, and for programs that compare it with the time of a copy.
   */
  readonly modifiedMs: number;
  /**
   * At most 64, 8 KiB in total. They are moved and copied with the file. Attributes whose names begin with
   * `content.` describe the content: a put or a write in place removes them, unless the put sets them.
   */
  readonly attributes?: Attributes | undefined;
}

/** A file as it was at one moment. */
export interface FileView extends FileStat {
  readonly kind: "file";
  /**
   * Reads this version, even after the path has got another one. Returns fewer bytes only at the end.
   * @param length 0 to 4 MiB
   * @throws LeaseholdError `FILE_CHANGED` if this version can no longer be read: the file was written in
   *   place, or for a minute no path has had this version and nobody has read it.
   */
  read(offset: number, length: number, options?: FileCallOptions): Promise<Uint8Array>;
  /** Reads of this many bytes, at multiples of it, cost least. Absent if the size doesn't matter. */
  readonly pieceBytes?: number | undefined;
}

export interface FolderStat {
  readonly kind: "folder";
  readonly path: string;
  readonly modifiedMs: number;
  /** As {@link FileStat.attributes}. */
  readonly attributes?: Attributes | undefined;
  readonly usage: Usage;
  /** The folder's own quota. */
  readonly quota?: Quota | undefined;
  /** The space left by the quotas of this folder and those above it. Not in lists. */
  readonly left?: Quota | undefined;
}

/** What a folder contains, at any depth. */
export interface Usage {
  /** The size of its files. Every copy counts in full; files that are written in place count as 0. */
  readonly bytes: number;
  /** The number of files and folders. */
  readonly files: number;
  /** The number of snapshots of this folder and the folders in it. Their contents don't count. */
  readonly snapshots: number;
}

/** The greatest {@link Usage} that a change may produce; null: no limit. */
export interface Quota {
  readonly bytes: number | null;
  readonly files: number | null;
}

export type Entry = (FileStat & { readonly kind: "file" }) | FolderStat;

export interface EntryList {
  /** Sorted by name; folders are compared with a slash at the end of their names. */
  readonly entries: readonly Entry[];
  /** Pass it as `after` to get the rest. Absent on the last page. */
  readonly next?: string;
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
  /** 1 to 1,000; default 1,000. A page may have fewer even when {@link FileList.next} is set. */
  readonly limit?: number | undefined;
}

export interface ChildrenOptions extends ListFilesOptions {
  /** Only entries whose names begin with this. */
  readonly prefix?: string | undefined;
}

/**
 * An open file: a path with methods to read and write it in place. A file may be opened any number of times,
 * on any node; each operation goes to the file's current primary. Nothing is lost without `close`. The first
 * write to a file that was put, renamed or copied makes a copy, which then has a primary of its own.
 *
 * Operations on one file are linearizable, with one restriction: when a call that covers several blocks
 * fails, some of them may have been changed, each entirely or not at all. Reads return only data that a
 * majority has.
 *
 * Errors of all methods: `NO_QUORUM` when no majority of nodes answered in time, `FILE_DAMAGED`,
 * `OVERLOADED`, `CLOSED`, `UNAUTHENTICATED`. Changes can also fail with `STORE_FULL` (the primary's disk is
 * full) and `FILE_UNCERTAIN` (no majority had the change on disk in time, perhaps because disks are full):
 * then the change may or may not have happened, or may still happen until the next successful operation on
 * the file. After any other error the change did not happen. `FILE_NOT_FOUND` if the file was removed.
 */
export interface ReplicatedFile extends AsyncDisposable {
  readonly path: string;
  /**
   * Block size of the files that this node creates, in bytes: 512 to 4 MiB. Writes that fill whole blocks
   * need no read first.
   */
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
   * The data is on disk at a majority when this resolves. A write beyond the end grows the file and fills the
   * gap with zeros.
   * @param bytes 0 to 4 MiB; must not be changed until the promise settles
   */
  write(offset: number, bytes: Uint8Array, options?: FileCallOptions): Promise<void>;
  /** Writes at the end; concurrent appends don't overwrite each other. Resolves with the offset. */
  append(bytes: Uint8Array, options?: FileCallOptions): Promise<number>;
  /** Truncates the file, or extends it with zeros. */
  truncate(size: number, options?: FileCallOptions): Promise<void>;
  /**
   * Waits until every reachable node has the whole file, and resolves with the number of nodes that have it.
   * (A write doesn't wait for the slowest node.)
   */
  sync(options?: FileCallOptions): Promise<number>;
  close(): Promise<void>;
}

export interface ChangesOptions extends FileCallOptions {
  /** Only changes after this {@link FileChange.cursor}. Default: from now on. */
  readonly after?: string | undefined;
}

/** A change of a name. A change reported for a folder covers everything in it. */
export interface FileChange {
  /**
   * - `created`, `replaced`, `removed`
   * - `renamed`: moved here from `from`, replacing anything that was at `path`
   * - `touched`: only the modification time or the attributes changed
   */
  readonly what: "created" | "replaced" | "renamed" | "removed" | "touched";
  readonly kind: "file" | "folder";
  readonly path: string;
  readonly from?: string | undefined;
  /** The file's {@link FileStat.version} after the change. Absent for files that are written in place. */
  readonly version?: string | undefined;
  /** In bytes. Present when `version` is. */
  readonly size?: number | undefined;
  /** The position of this change in the order of all changes. */
  readonly cursor: string;
}

export interface ChangeBatch {
  /** In order. May be empty: then only the cursor has moved, because of changes elsewhere. */
  readonly changes: readonly FileChange[];
  /** Resumes after this batch, at any node of the cluster. */
  readonly cursor: string;
}

/** The nodes of a cluster. */
export interface NodesReport {
  /** Increases with each change of the list. */
  readonly version: number;
  /** The number of nodes that store a put file, for folders that don't set their own. */
  readonly copies: number;
  readonly nodes: readonly {
    readonly id: string;
    readonly address: string;
    /** The failure domain: nodes with the same zone may fail together. Empty: this node fails alone. */
    readonly zone: string;
    /** `new`: the node has not joined yet; `draining`: its contents are being moved to other nodes. */
    readonly state: "new" | "serving" | "draining";
    /**
     * Whether the node keeps the names and the files that are written in place. Such a node can't be removed.
     */
    readonly keepsNames: boolean;
    /** Contents placed on it. */
    readonly contents: number;
  }[];
}

/**
 * - `add`: allows a node to join (with `joins`), or changes the address or zone of a listed node
 * - `drain`: moves the node's contents to other nodes and gives it no new ones; `serve` undoes that
 * - `remove`: removes a node that has no contents
 * - `copies`: the number of nodes that store a put file; in one folder, or in all that don't set their own
 */
export type NodesChange =
  | {
      readonly what: "add";
      readonly node: { readonly id: string; readonly address: string; readonly zone: string };
    }
  | { readonly what: "drain" | "serve" | "remove"; readonly id: string }
  | { readonly what: "copies"; readonly copies: number; readonly folder?: string | undefined };

export interface NodesOptions extends FileCallOptions {
  /** Rejects with `FILE_CHANGED` unless the list has this {@link NodesReport.version}. */
  readonly ifList?: number | undefined;
}

/**
 * Replicated files, as one of their nodes serves them. Any node accepts any call and forwards it to the
 * primary.
 */
export interface Files extends AsyncDisposable {
  /**
   * @param path 1 to 480 bytes of UTF-8, segments divided by `/`, none of them empty, `.` or `..`, no control
   *   characters
   * @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_EXISTS`, `INVALID_PATH`, and what {@link ReplicatedFile}
   *   names.
   */
  open(path: string, options?: OpenFileOptions): Promise<ReplicatedFile>;
  /** Like {@link ReplicatedFile.stat}, without opening the file. */
  stat(path: string, options?: FileCallOptions): Promise<FileStat>;
  /** What a path names: a file, whose current version can be read; a folder; or nothing. */
  entry(path: string, options?: FileCallOptions): Promise<FileView | FolderStat | undefined>;
  /**
   * Creates or replaces a file by a single change of its name, once all bytes are on disk at a majority:
   * readers see either the old content or all of the new one. If reading the bytes fails, nothing has
   * changed. Of two concurrent calls the later change wins, or one is refused if conditions say so.
   * @param bytes must not be changed until the promise settles
   * @throws LeaseholdError `FILE_EXISTS`, `FILE_CHANGED`, `FILE_NOT_FOUND`, `INVALID_PATH`, `INVALID_RANGE`
   *   for too many attributes, and what {@link ReplicatedFile} names. After `FILE_UNCERTAIN` the file has the
   *   old content or the new one.
   */
  put(path: string, bytes: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<FileStat>;
  /**
   * Creates or replaces a file by joining the contents of files in a folder, in the given order, and removes
   * the folder; all by a single change and without copying data.
   * @param id 1 to 64 letters and digits, never reused: a repeated call recognizes the file that it made
   *   before
   * @param files at most 10,000 names in the folder, and the versions that they must have
   * @throws LeaseholdError `FILE_CHANGED` also if a file has another version, `UNSUPPORTED` if the contents
   *   have more than 10,000 parts in total, and what {@link Files.put} throws.
   */
  compose(
    path: string,
    id: string,
    folder: string,
    files: readonly (readonly [name: string, version: string])[],
    options?: ComposeOptions,
  ): Promise<FileStat>;
  /**
   * Creates a folder. At FOLDER/.snapshots/NAME it creates a snapshot instead: a copy of FOLDER made by a
   * single change, sharing its contents. A snapshot is read-only: calls that would change it are refused with
   * `UNSUPPORTED`, except for {@link Files.remove} of the whole snapshot. Files in it may be copied
   * elsewhere. The snapshots' folder appears in no list and no copy of FOLDER. FOLDER can't be removed while
   * it has snapshots.
   * @throws LeaseholdError `FILE_EXISTS`, `FILE_NOT_FOUND`, `UNSUPPORTED` for more than 100 snapshots, more
   *   than 8,000 names in one, or a path in it that would be too long, and what {@link ReplicatedFile} names.
   */
  makeFolder(path: string, options?: FolderOptions): Promise<void>;
  /**
   * Lists files whose paths begin with `prefix` (`""`: all files; `"reports/"`: those at any depth in that
   * folder). The names on each page are consistent with each other. For files that are written in place, size
   * and version are at least as new as the last change acknowledged before the call.
   */
  list(prefix: string, options?: ListFilesOptions): Promise<FileList>;
  /**
   * Lists the files and folders directly in a folder; `""` is the root.
   * @throws LeaseholdError `FILE_NOT_FOUND`, and what {@link ReplicatedFile} names.
   */
  children(folder: string, options?: ChildrenOptions): Promise<EntryList>;
  /**
   * Follows the changes in a folder at any depth (`""`: all files): each acknowledged change once, in order.
   * The first batch arrives at once, so that a program can then list the folder and miss nothing. Writes in
   * place aren't reported, except for a file's first one, as `replaced`. Nothing is read ahead: a slow
   * program falls behind.
   *
   * A folder that is renamed out of the followed folder is `removed`; one that is renamed into it is
   * `created`. If a parent of the followed folder is removed, renamed or replaced, that is reported for the
   * followed folder itself. When a change also creates or removes parent folders, only the topmost is
   * reported.
   * @throws LeaseholdError from the iterator: `CURSOR_GONE` if some changes after the cursor are no longer
   *   kept (the last 10,000 are, or with long paths fewer, but at least 1,000); `INVALID_PATH`; and what
   *   {@link ReplicatedFile} names: then resume with the last cursor.
   */
  changes(folder: string, options?: ChangesOptions): AsyncIterable<ChangeBatch>;
  /**
   * Removes a file, or a folder with everything in it, by a single change.
   * @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_CHANGED`, `FILE_EXISTS` if a folder is not empty, and what
   *   {@link ReplicatedFile} names.
   */
  remove(path: string, options?: RemoveOptions): Promise<void>;
  /**
   * Sets {@link FileStat.modifiedMs} of a file, or attributes of a file or folder, by a single change. The
   * version stays the same.
   * @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_CHANGED`, `FILE_EXISTS` for the time of a folder,
   *   `INVALID_RANGE`, `UNSUPPORTED` for the time of a file that is written in place, and what {@link
   *   ReplicatedFile} names.
   */
  touch(path: string, options: TouchOptions): Promise<void>;
  /**
   * Renames a file, or a folder with everything in it, by a single change. Resolves with whether the target
   * was replaced.
   */
  rename(from: string, to: string, options?: MoveOptions): Promise<boolean>;
  /**
   * Copies by a single change of names. The contents are shared until one of them is written. Otherwise like
   * {@link rename}.
   */
  copy(from: string, to: string, options?: CopyOptions): Promise<boolean>;
  /** The list of nodes. */
  nodes(options?: FileCallOptions): Promise<NodesReport>;
  /**
   * Changes the list of nodes.
   * @throws LeaseholdError `INVALID_CONFIG` if the list does not allow it, `FILE_CHANGED`, and what {@link
   *   ReplicatedFile} names.
   */
  changeNodes(change: NodesChange, options?: NodesOptions): Promise<NodesReport>;
  /**
   * Sets the quota of a folder; null removes it. Changes that would exceed it are refused with
   * `QUOTA_EXCEEDED`; files already there stay. The quota moves with the folder and is not copied.
   * @param quota integers of 0 or more
   * @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_EXISTS` for a file, `INVALID_PATH` for the root,
   *   `INVALID_RANGE`, and what {@link ReplicatedFile} names.
   */
  setQuota(folder: string, quota: Quota | null, options?: FileCallOptions): Promise<void>;
  /** The state of this node. Asks no other nodes. */
  status(): FilesStatus;
  /** Releases its files' leases and stops serving. Idempotent. */
  close(): Promise<void>;
}

export interface FilesStatus {
  readonly node: string;
  /**
   * `serving`. `waiting`: the node has an empty disk and can't join yet (a new cluster needs all nodes, a
   * replaced disk a majority of the others, and an added node the names). `rebuilding`: it serves while it
   * copies files that its disk has lost or that have been placed on it.
   */
  readonly state: "waiting" | "rebuilding" | "serving" | "closed";
  /** The number of files left to copy, and the total, while `rebuilding`. */
  readonly rebuilding?: { readonly left: number; readonly total: number };
  /**
   * The other nodes: whether each answered last time, and how many files that have their primary here are
   * incomplete there.
   */
  readonly peers: readonly {
    readonly node: string;
    readonly address: string;
    readonly reachable: boolean;
    readonly behind: number;
  }[];
  /**
   * Files whose primary is here, with their epochs: the first 1,000. `names` is the primary of all names;
   * `live/…` is that of a file that is written in place.
   */
  readonly primaries: readonly { readonly path: string; readonly epoch: string }[];
  /** The number of files whose primary is here. */
  readonly primariesTotal: number;
  /**
   * Whether this node and those that last answered it form a majority of the nodes that keep the names.
   * Without a majority nothing can be written.
   */
  readonly majority: boolean;
  /** Calls of {@link Files.put} in progress at this node. */
  readonly uploads: number;
  readonly counters: {
    readonly reads: number;
    readonly writes: number;
    /** Calls that were forwarded to the primary at another node. */
    readonly forwarded: number;
    /** Tenures begun with a reset. */
    readonly resets: number;
    /** Blocks read by the scrub, found damaged by it, and repaired from another node. */
    readonly scrubbed: number;
    readonly damaged: number;
    readonly repaired: number;
    /** Contents that no path had any more, deleted from this node's disk. */
    readonly collected: number;
    /** Contents copied to this node because nodes were added or removed. */
    readonly placed: number;
  };
}

/** A finished client request. */
export interface ServedRequest {
  /** `webdav` or `s3`. */
  readonly api: string;
  /** As the client sent it. */
  readonly method: string;
  /**
   * `ok`; `cut` if the connection ended before the answer did; otherwise the lower-case code of an error, or
   * the status.
   */
  readonly outcome: string;
  readonly tookMs: number;
  /** Bytes on the socket. */
  readonly received: number;
  readonly sent: number;
}

/** Receives the clients' requests. */
export interface RequestObserver {
  begun(api: string): void;
  ended(request: ServedRequest): void;
}
