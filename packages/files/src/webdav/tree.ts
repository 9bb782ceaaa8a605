import type { AttributeChanges, Attributes, Quota, Usage } from "../types.js";

/** A file or a folder. The path has no slash at either end; the path of the root is empty. */
export interface DavEntry {
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly bytes: number;
  readonly modifiedMs: number;
  /** Changes whenever the content does. */
  readonly etag: string;
  readonly attributes: Attributes;
  /** For a folder. */
  readonly usage?: Usage | undefined;
  readonly quota?: Quota | undefined;
  /** The space that the quotas leave. Only if the entry was looked up by itself. */
  readonly left?: Quota | undefined;
}

/**
 * Conditions of a PUT, which hold at the moment of the change, and what the PUT sets in addition to the
 * content.
 */
export interface PutHow {
  /** The etag that the file must have. */
  readonly etag?: string | undefined;
  readonly isNew?: boolean | undefined;
  /** Creates missing folders above the path. */
  readonly makeFolders?: boolean | undefined;
  /** Called before the first byte, with whether the path has a file. May reject to refuse the upload. */
  readonly accept?: ((existed: boolean) => Promise<void>) | undefined;
  /** The number of bytes, if known. */
  readonly size?: number | undefined;
  /** Default: the time of the change. */
  readonly modifiedMs?: number | undefined;
}

export interface TouchHow {
  readonly modifiedMs: number | undefined;
  readonly attributes: AttributeChanges;
  readonly etag: string | undefined;
}

export interface TransferHow {
  readonly deep: boolean;
  readonly overwrite: boolean;
  readonly etag: string | undefined;
}

/** The tree that WebDAV serves: files in folders. */
export interface DavTree {
  /** @throws LeaseholdError `PERMISSION_DENIED` if the user may not change the path. */
  mustWrite(path: string): void;
  find(path: string): Promise<DavEntry | undefined>;
  /** Lists the direct children of a folder. */
  children(path: string): AsyncIterable<DavEntry>;
  /** Reads bytes of a file from an offset, from the content that it had when it was found. */
  read(entry: DavEntry, offset: number, length: number): AsyncIterable<Uint8Array>;
  /** Creates or replaces a file by a single change. If the bytes end with an error, nothing changes. */
  write(path: string, bytes: AsyncIterable<Uint8Array>, how: PutHow): Promise<DavEntry>;
  makeFolder(path: string): Promise<void>;
  /** Removes a file, or a folder with everything in it, by a single change. */
  remove(path: string, etag: string | undefined): Promise<void>;
  /** Sets the modification time of a file and the attributes of a file or folder, by a single change. */
  touch(path: string, changes: TouchHow): Promise<void>;
  setQuota(folder: string, quota: Quota | null): Promise<void>;
  /** Moves or copies a file, or a folder with or without its contents, by a single change. */
  transfer(kind: "move" | "copy", from: string, to: string, how: TransferHow): Promise<{ existed: boolean }>;
}

/** The lease for a path's locks at one node. */
export interface HeldLock {
  release(): Promise<void>;
  /** Aborted when the lease is lost. */
  readonly lost: AbortSignal;
}

/** The facts about a path's locks that all nodes can learn. */
export interface LockMark {
  /** The token of an exclusive lock, or the common beginning of the tokens of shared ones. */
  readonly token: string;
  readonly isDeep: boolean;
  readonly isShared: boolean;
}

/** The locks, as all nodes share them. */
export interface LockGround {
  /** Undefined if the path is already locked. */
  take(path: string, mark: LockMark): Promise<HeldLock | undefined>;
  /** The locks on the path, held by any node. */
  markOf(path: string): Promise<LockMark | undefined>;
  /** The locks on anything in a folder, held by any node. This looks through all leases. */
  marksBelow(folder: string): Promise<readonly (readonly [path: string, mark: LockMark])[]>;
}
