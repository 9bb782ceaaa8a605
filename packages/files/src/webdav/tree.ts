import type { AttributeChanges, Attributes, Quota, Usage } from "../types.js";

/** A file or a folder. The path has no slash at either end; the root's is empty. */
export interface DavEntry {
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly bytes: number;
  readonly modifiedMs: number;
  /** Changes with the content. */
  readonly etag: string;
  readonly attributes: Attributes;
  /** Of a folder. */
  readonly usage?: Usage | undefined;
  readonly quota?: Quota | undefined;
  /** The rest of the quotas, if the entry was looked up by itself. */
  readonly left?: Quota | undefined;
}

/** Conditions of a PUT, which hold at the moment of the change, and what it makes beside the content. */
export interface PutHow {
  /** The etag that the file must have. */
  readonly etag?: string | undefined;
  readonly isNew?: boolean | undefined;
  /** Makes the folders above it. */
  readonly makeFolders?: boolean | undefined;
  /** Called before the first byte, with whether the path has a file; it may refuse the bytes. */
  readonly accept?: ((existed: boolean) => Promise<void>) | undefined;
  /** The length of the bytes, if it is known. */
  readonly size?: number | undefined;
  /** Otherwise the time of the change. */
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
  /** The direct children of a folder. */
  children(path: string): AsyncIterable<DavEntry>;
  /** Bytes of a file from an offset, of the content that it had when it was found. */
  read(entry: DavEntry, offset: number, length: number): AsyncIterable<Uint8Array>;
  /** Makes or replaces a file by one change; if the bytes end with an error, nothing changes. */
  write(path: string, bytes: AsyncIterable<Uint8Array>, how: PutHow): Promise<DavEntry>;
  makeFolder(path: string): Promise<void>;
  /** Removes a file, or a folder and its content, by one change. */
  remove(path: string, etag: string | undefined): Promise<void>;
  /** Sets the time of modification of a file, and attributes of a file or folder, by one change. */
  touch(path: string, changes: TouchHow): Promise<void>;
  setQuota(folder: string, quota: Quota | null): Promise<void>;
  /** Moves or copies a file, or a folder with or without its content, by one change. */
  transfer(kind: "move" | "copy", from: string, to: string, how: TransferHow): Promise<{ existed: boolean }>;
}

/** The lease of a path's locks at one node. */
export interface HeldLock {
  release(): Promise<void>;
  /** Aborted when the lease is lost. */
  readonly lost: AbortSignal;
}

/** The facts about the locks of a path that all nodes can learn. */
export interface LockMark {
  /** The token of an exclusive lock; the beginning of the tokens of shared ones. */
  readonly token: string;
  readonly isDeep: boolean;
  readonly isShared: boolean;
}

/** The locks that all nodes share. */
export interface LockGround {
  /** Undefined if there are locks on the path already. */
  take(path: string, mark: LockMark): Promise<HeldLock | undefined>;
  /** The locks on the path, at any node. */
  markOf(path: string): Promise<LockMark | undefined>;
  /** The locks on what is in a folder, at any node. It looks through all leases. */
  marksBelow(folder: string): Promise<readonly (readonly [path: string, mark: LockMark])[]>;
}
