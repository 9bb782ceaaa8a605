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

/** Strings that a path has beside its content, by their names. */
export type Attributes = Readonly<Record<string, string>>;

/** Sets attributes; null removes one. The others of the path stay. */
export type AttributeChanges = Readonly<Record<string, string | null>>;

export interface TouchOptions extends ConditionOptions {
  /** The {@link FileStat.modifiedMs}: an integer that a `Date` can have. Not of a folder. */
  readonly modifiedMs?: number | undefined;
  readonly attributes?: AttributeChanges | undefined;
}

export interface PutOptions extends ConditionOptions {
  /** Rejects with `FILE_EXISTS` if the path has a file already. Default false. */
  readonly ifMissing?: boolean | undefined;
  /** Makes missing folders above the path. Default true; otherwise `FILE_NOT_FOUND`. */
  readonly makeFolders?: boolean | undefined;
  /** The size, if it is known: an upload beyond a quota is then refused before it is sent. */
  readonly size?: number | undefined;
  /**
   * Called once, before the first byte is taken, with whether the path has a file. If it rejects, `put`
   * rejects with its error, and nothing has changed.
   */
  readonly accept?: ((existed: boolean) => Promise<void>) | undefined;
  /** The file's {@link FileStat.modifiedMs}: an integer that a `Date` can have. Default: now. */
  readonly modifiedMs?: number | undefined;
  /**
   * Changes of the path's attributes, made with the change of its content. A function is called when all
   * bytes were read.
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
   * A folder with everything in it, or only with `"folders"`: `FILE_EXISTS` if there is a file in it, however
   * deep, or more than 8,000 folders. Default false: `FILE_EXISTS` if there is anything.
   */
  readonly recursive?: boolean | "folders" | undefined;
  /** Also removes folders above it, within this one, that are empty then and have no attributes. */
  readonly pruneIn?: string | undefined;
}

export interface MoveOptions extends ConditionOptions {
  /** What there may be at the target, to be replaced: by default a file, but no folder. */
  readonly over?: "nothing" | "file" | "anything" | undefined;
  /** Makes missing folders above the target. Default true; otherwise `FILE_NOT_FOUND`. */
  readonly makeFolders?: boolean | undefined;
  /** Changes of the attributes that the target gets from the source. */
  readonly attributes?: AttributeChanges | undefined;
}

export interface CopyOptions extends MoveOptions {
  /** Of a folder: with everything in it, at most 8,000 names. Default true. */
  readonly deep?: boolean | undefined;
}

export interface FileStat {
  readonly path: string;
  /** In bytes. Ranges that were never written read as zeros. */
  readonly size: number;
  /** The version: new for each change, and never used again. For ETags and conditions. */
  readonly version: string;
  /**
   * The time of the last change, ms since 1970 by the system clock of its primary, or what the client set:
   * for humans, and for programs that compare it with the time of a copy.
   */
  readonly modifiedMs: number;
  /**
   * At most 64, of 8 KiB together. They are moved and copied with the file. Those whose names begin with
   * `content.` describe the content: a put or a write in place removes them, unless the put sets them.
   */
  readonly attributes?: Attributes | undefined;
}

/** A file as it was at one moment. */
export interface FileView extends FileStat {
  readonly kind: "file";
  /**
   * Reads this version, also after the path has another. Returns fewer bytes only at the end.
   *
   * @param length 0 to 4 MiB
   * @throws LeaseholdError `FILE_CHANGED` if this version cannot be read any more: it was written in place,
   *   or no path has had it for a minute in which nobody read it.
   */
  read(offset: number, length: number, options?: FileCallOptions): Promise<Uint8Array>;
  /** Reads of so many bytes, from multiples of it on, cost least. Absent if it does not matter. */
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
  /** What the quotas of the folder and of those above it leave. Not in lists. */
  readonly left?: Quota | undefined;
}

/** What is in a folder, however deep. */
export interface Usage {
  /** Of its files. Copies count in full, and files that are written in place count 0. */
  readonly bytes: number;
  /** The number of files and folders. */
  readonly files: number;
  /** Snapshots of it and of folders in it, whose contents do not count. */
  readonly snapshots: number;
}

/** The greatest {@link Usage} that a change may bring about; null: no limit. */
export interface Quota {
  readonly bytes: number | null;
  readonly files: number | null;
}

export type Entry = (FileStat & { readonly kind: "file" }) | FolderStat;

export interface EntryList {
  /** Sorted by name; a folder's name is compared with a slash at its end. */
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
  /** 1 to 1,000, default 1,000. A page may have fewer, with {@link FileList.next}. */
  readonly limit?: number | undefined;
}

export interface ChildrenOptions extends ListFilesOptions {
  /** Only those whose names begin so. */
  readonly prefix?: string | undefined;
}

/**
 * An open file: a path with methods, to read and write it in place. Any number may be open, on any node; each
 * operation goes to the primary of that moment. Nothing is lost without `close`.
 *
 * The first write to a file that was put, renamed or copied copies it: from then on it has a primary of its
 * own.
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

export interface ChangesOptions extends FileCallOptions {
  /** Only changes after this {@link FileChange.cursor}. Default: from now on. */
  readonly after?: string | undefined;
}

/** A change of a name. What is said of a folder is said of everything in it. */
export interface FileChange {
  /**
   * - `created`, `replaced`, `removed`
   * - `renamed`: from `from`; whatever was at `path` is gone
   * - `touched`: only its time of modification or its attributes have changed
   */
  readonly what: "created" | "replaced" | "renamed" | "removed" | "touched";
  readonly kind: "file" | "folder";
  readonly path: string;
  readonly from?: string | undefined;
  /** Of a file that is not written in place: its {@link FileStat.version} after the change. */
  readonly version?: string | undefined;
  /** In bytes, with `version`. */
  readonly size?: number | undefined;
  /** The place of this change in the order of all. */
  readonly cursor: string;
}

export interface ChangeBatch {
  /** In order. None: only the cursor has moved, because of changes elsewhere. */
  readonly changes: readonly FileChange[];
  /** To go on after this batch, at any node of the cluster. */
  readonly cursor: string;
}

/** The nodes of a cluster. */
export interface NodesReport {
  /** Rises with each change of the list. */
  readonly version: number;
  /** On how many nodes a put file is, in folders that say nothing else. */
  readonly copies: number;
  readonly nodes: readonly {
    readonly id: string;
    readonly address: string;
    /** What may fail with it. Empty: nothing else does. */
    readonly zone: string;
    /** `new`: the node has not come yet; `draining`: its contents are placed on others. */
    readonly state: "new" | "serving" | "draining";
    /** Whether it keeps the names, and files that are written in place. Such a node cannot be removed. */
    readonly keepsNames: boolean;
    /** Contents that are to be on it. */
    readonly contents: number;
  }[];
}

/**
 * - `add`: a node may come, with `joins`; or changes the address or zone of one that is there
 * - `drain`, `serve`: its contents are placed on other nodes, and it gets no new ones; or it gets some again
 * - `remove`: a node without contents leaves
 * - `copies`: on how many nodes put files are, or those of a folder that say nothing else
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
  /** What a path names: a file, whose version of this moment can be read, a folder, or nothing. */
  entry(path: string, options?: FileCallOptions): Promise<FileView | FolderStat | undefined>;
  /**
   * Creates or replaces a file by one change of its name, when all bytes are on disk at a majority: readers
   * see what was there before or all of this. If the bytes end with an error, nothing has changed. Of two
   * calls at once the later change stays, or one is refused if conditions say so.
   *
   * @param bytes must not be changed until the promise settles
   * @throws LeaseholdError `FILE_EXISTS`, `FILE_CHANGED`, `FILE_NOT_FOUND`, `INVALID_PATH`, `INVALID_RANGE`
   *   for too many attributes, and what {@link ReplicatedFile} names. After `FILE_UNCERTAIN` the file has the
   *   old content or the new one.
   */
  put(path: string, bytes: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<FileStat>;
  /**
   * Creates or replaces a file by the contents of files in a folder, in this order, and removes the folder,
   * all by one change and without copying.
   *
   * @param id 1 to 64 letters and digits that are never used again: a repeated call finds its own file
   * @param files at most 10,000 names in the folder, and the versions that they must have
   * @throws LeaseholdError `FILE_CHANGED` also if a file has another version, `UNSUPPORTED` if the contents
   *   consist of more than 10,000, and what {@link Files.put} does.
   */
  compose(
    path: string,
    id: string,
    folder: string,
    files: readonly (readonly [name: string, version: string])[],
    options?: ComposeOptions,
  ): Promise<FileStat>;
  /**
   * Makes a folder. At FOLDER/.snapshots/NAME it makes a snapshot: a copy of FOLDER by one change, whose
   * contents are shared. Nothing in there changes any more: calls are refused with `UNSUPPORTED`, except for
   * {@link Files.remove} of the whole snapshot, and copies of what is in it. The folder of snapshots is in no
   * list and no copy of FOLDER, which cannot be removed while it has snapshots.
   *
   * @throws LeaseholdError `FILE_EXISTS`, `FILE_NOT_FOUND`, `UNSUPPORTED` for more than 100 snapshots, 8,000
   *   names in one or a path in it that would be too long, and what {@link ReplicatedFile} names.
   */
  makeFolder(path: string, options?: FolderOptions): Promise<void>;
  /**
   * Files whose paths begin with `prefix` (`""`: all; `"reports/"`: those in that folder and below). Each
   * page shows the names of one moment; sizes and versions of files that are written in place are those of a
   * moment not before the last change that was acknowledged before the call.
   */
  list(prefix: string, options?: ListFilesOptions): Promise<FileList>;
  /**
   * The files and folders that are directly in a folder, `""` for the root.
   *
   * @throws LeaseholdError `FILE_NOT_FOUND`, and what {@link ReplicatedFile} names.
   */
  children(folder: string, options?: ChildrenOptions): Promise<EntryList>;
  /**
   * Follows the changes of a folder and of all in it (`""`: all files), each once, in the order in which they
   * were made; a change is in it when it is acknowledged. The first batch comes at once, so that a program
   * that begins can list the folder then. Writes in place are not told, except that the first one of a file
   * `replaced` it. Nothing is read ahead: a program that takes its time falls behind.
   *
   * A renamed folder that leaves the one that is followed is `removed`, and one that comes is `created`. If a
   * folder above is removed, renamed or replaced, the folder itself is. Of the folders that a change makes or
   * removes on its way, only the topmost is told.
   *
   * @throws LeaseholdError from the iterator: `CURSOR_GONE` if not all changes after the cursor are kept (the
   *   last 10,000 are, or fewer with long paths, but at least 1,000); `INVALID_PATH`; and what
   *   {@link ReplicatedFile} names: go on with the last cursor then.
   */
  changes(folder: string, options?: ChangesOptions): AsyncIterable<ChangeBatch>;
  /**
   * Removes a file or folder, whatever is in it, by one change.
   *
   * @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_CHANGED`, `FILE_EXISTS` if a folder is not empty, and what
   *   {@link ReplicatedFile} names.
   */
  remove(path: string, options?: RemoveOptions): Promise<void>;
  /**
   * Sets {@link FileStat.modifiedMs} of a file, or attributes of a file or folder, by one change; a version
   * stays.
   *
   * @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_CHANGED`, `FILE_EXISTS` for the time of a folder,
   *   `INVALID_RANGE`, `UNSUPPORTED` for the time of a file that is written in place, and what {@link
   *   ReplicatedFile} names.
   */
  touch(path: string, options: TouchOptions): Promise<void>;
  /**
   * Renames a file or folder, whatever is in it, by one change. Resolves with whether it replaced another.
   */
  rename(from: string, to: string, options?: MoveOptions): Promise<boolean>;
  /**
   * Copies by one change of names: the contents are shared until one of them is written. As {@link rename}.
   */
  copy(from: string, to: string, options?: CopyOptions): Promise<boolean>;
  /** The list of nodes. */
  nodes(options?: FileCallOptions): Promise<NodesReport>;
  /**
   * Changes the list of nodes, which is a part of the names.
   *
   * @throws LeaseholdError `INVALID_CONFIG` if the list does not allow it, `FILE_CHANGED`, and what {@link
   *   ReplicatedFile} names.
   */
  changeNodes(change: NodesChange, options?: NodesOptions): Promise<NodesReport>;
  /**
   * Sets the quota of a folder, or with null removes it. Changes that would bring more into the folder are
   * refused with `QUOTA_EXCEEDED`; what is there stays. The quota moves with the folder, and is not copied.
   *
   * @param quota integers of 0 or more
   * @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_EXISTS` for a file, `INVALID_PATH` for the root,
   *   `INVALID_RANGE`, and what {@link ReplicatedFile} names.
   */
  setQuota(folder: string, quota: Quota | null, options?: FileCallOptions): Promise<void>;
  /** The state of this node, without asking others. */
  status(): FilesStatus;
  /** Releases its files' leases and stops serving. Idempotent. */
  close(): Promise<void>;
}

export interface FilesStatus {
  readonly node: string;
  /**
   * `serving`; `waiting`: the node has an empty disk and cannot join yet (a new cluster begins when all nodes
   * are present, a replaced disk needs a majority of the others, and an added node the names);
   * `rebuilding`: it serves, and copies files that its disk has lost or that are to be there.
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
  /**
   * Files whose primary is here, with their epochs: the first 1,000. `names` is the primary of all names, and
   * `live/…` that of a file that is written in place.
   */
  readonly primaries: readonly { readonly path: string; readonly epoch: string }[];
  /** The number of all of them. */
  readonly primariesTotal: number;
  /**
   * Whether this node and those that answered it last are a majority of those that keep the names: without
   * one nothing can be written.
   */
  readonly majority: boolean;
  /** Calls of {@link Files.put} in progress at this node. */
  readonly uploads: number;
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
    /** Contents that no path had any more, removed from this node's disk. */
    readonly collected: number;
    /** Contents that this node has taken over from others, because nodes came or went. */
    readonly placed: number;
  };
}

/** A request of a client that has ended. */
export interface ServedRequest {
  /** `webdav` or `s3`. */
  readonly api: string;
  /** As the client sent it. */
  readonly method: string;
  /** `ok`; `cut` before the answer's end; else the code of an error in lower case, or the status. */
  readonly outcome: string;
  readonly tookMs: number;
  /** Bytes over the socket. */
  readonly received: number;
  readonly sent: number;
}

/** Hears of the requests of clients. */
export interface RequestObserver {
  begun(api: string): void;
  ended(request: ServedRequest): void;
}
