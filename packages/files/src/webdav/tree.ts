/** A file or a folder. The path has no slash at either end; the root's is empty. */
export interface DavEntry {
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly bytes: number;
  readonly modifiedMs: number;
  /** Changes with the content. */
  readonly etag: string;
}

/** The tree that WebDAV serves: files in folders. */
export interface DavTree {
  find(path: string): Promise<DavEntry | undefined>;
  /** The direct children of a folder. */
  children(path: string): AsyncIterable<DavEntry>;
  /** Bytes of a file from an offset, as long as its content is that of the entry. */
  read(entry: DavEntry, offset: number, length: number): AsyncIterable<Uint8Array>;
  /** Makes or replaces a file; if the bytes end with an error, nothing changes. */
  write(path: string, bytes: AsyncIterable<Uint8Array>): Promise<void>;
  makeFolder(path: string): Promise<void>;
  /** Removes a file, or a folder and its content. */
  remove(path: string): Promise<void>;
  /** Moves a file, or a folder and its content, to a free path. */
  move(from: string, to: string): Promise<void>;
  /** Copies a file or folder; a folder without its content if not `deep`. */
  copy(from: string, to: string, deep: boolean): Promise<void>;
}

/** A lock that counts at all nodes. */
export interface HeldLock {
  release(): Promise<void>;
  /** Aborted when the lock is lost. */
  readonly lost: AbortSignal;
}

/** The locks that all nodes share. */
export interface LockGround {
  /** Undefined if another node holds a lock on the path. */
  take(path: string, token: string): Promise<HeldLock | undefined>;
  /** The token of the lock on the path, at any node. */
  tokenOf(path: string): Promise<string | undefined>;
}
