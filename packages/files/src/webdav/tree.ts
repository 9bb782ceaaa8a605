/** A file or a folder. The path has no slash at either end; that of the root is empty. */
export interface DavEntry {
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly bytes: number;
  readonly modifiedMs: number;
  /** Another one when the content is another. */
  readonly etag: string;
}

/** What WebDAV shows: files in folders. */
export interface DavTree {
  find(path: string): Promise<DavEntry | undefined>;
  /** What is in a folder, but not what is in its folders. */
  children(path: string): AsyncIterable<DavEntry>;
  /** Bytes of a file from a position on, as long as its content is that of the entry. */
  read(entry: DavEntry, offset: number, length: number): AsyncIterable<Uint8Array>;
  /** Makes or replaces a file; if the bytes end with an error, nothing changes. */
  write(path: string, bytes: AsyncIterable<Uint8Array>): Promise<void>;
  makeFolder(path: string): Promise<void>;
  /** Removes a file, or a folder with all that is in it. */
  remove(path: string): Promise<void>;
  /** Moves a file, or a folder with all that is in it, to where nothing is. */
  move(from: string, to: string): Promise<void>;
  /** The same, but leaves what was there; of a folder without its content if not `deep`. */
  copy(from: string, to: string, deep: boolean): Promise<void>;
}

/** A lock that is held for all nodes. */
export interface HeldLock {
  release(): Promise<void>;
  /** Aborted when the lock can no longer be relied on. */
  readonly lost: AbortSignal;
}

/** Where locks are held, so that all nodes know of them. */
export interface LockGround {
  /** Undefined if another node holds a lock on the path. */
  take(path: string, token: string): Promise<HeldLock | undefined>;
  /** The token of the lock on the path, at whatever node. */
  tokenOf(path: string): Promise<string | undefined>;
}
