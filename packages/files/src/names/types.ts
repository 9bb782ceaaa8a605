/** Names of files: a path names a content, and each change of names happens whole or not at all. */
import type { LogPage } from "./change-log.js";
import type { Holder, NodeChange, NodeList } from "./nodes.js";

/** The content that a name has. */
export interface Content {
  /** Globally unique, never used again. Empty for a file of 0 bytes, which has no blocks. */
  readonly id: string;
  /** A file that is written in place: its primary knows its size and version. Otherwise it never changes. */
  readonly isLive: boolean;
  /** In bytes. 0 if live. */
  readonly size: number;
  readonly blockSize: number;
  /** Over the tags of its blocks, which are checksums of their bytes. */
  readonly checksum: number;
  /** The contents that it is made of, in order. Then no disk has a content with its own id. */
  readonly parts?: readonly Part[] | undefined;
}

/** A content that never changes and is not empty, in another. */
export type Part = Pick<Content, "id" | "size" | "blockSize" | "checksum">;

/** The content of a file of 0 bytes. */
export const emptyContent: Content = { id: "", isLive: false, size: 0, blockSize: 1, checksum: 0 };

/** Strings that a name has beside its content, by their names. */
export type Attributes = Readonly<Record<string, string>>;

/** Sets attributes; null removes one. */
export type AttributeChanges = Readonly<Record<string, string | null>>;

/** What is in a folder, however deep: bytes of its files, and the number of its files and folders. */
export interface Usage {
  readonly bytes: number;
  readonly files: number;
  /** Snapshots of it and of folders in it. */
  readonly snapshots: number;
}

/** The greatest use that changes may bring about; null: no limit. */
export interface Quota {
  readonly bytes: number | null;
  readonly files: number | null;
}

export interface FolderEntry {
  readonly kind: "folder";
  readonly modifiedMs: number;
  /** Absent: none. It stays with the folder when that is moved, and is not copied. */
  readonly quota?: Quota | undefined;
  /** Absent: none. */
  readonly attributes?: Attributes | undefined;
}

export interface FileEntry {
  readonly kind: "file";
  readonly content: Content;
  /** New for each change of the name's content, and never used again. */
  readonly version: string;
  readonly modifiedMs: number;
  /** Absent: none. */
  readonly attributes?: Attributes | undefined;
}

export type Entry = FolderEntry | FileEntry;

/** A name in its folder. A folder is renamed by one change, whatever is in it. */
export interface Name {
  /** Never used again. The root is 0. */
  readonly id: number;
  /** The id of its folder. */
  readonly parent: number;
  readonly name: string;
  readonly entry: Entry;
}

/** What a change makes of the name with that id; null: it and everything below are removed. */
export type Fact = readonly [id: number, name: Name | null];

/** The nodes that a content is on. Facts of names whose contents have them are in the same record. */
export type Placement = readonly [content: string, nodes: readonly string[]];

/** Live contents that are moved, dropped or shared by a change: they must accept no more writes. */
interface Affecting {
  /** Ids of live contents that have been sealed. Their versions were checked then. */
  readonly sealed: readonly string[];
}

export interface PutChange extends Affecting {
  readonly kind: "put";
  readonly path: string;
  readonly content: Content;
  /** Nodes that have all of the content on disk: a majority of those for which it was announced. */
  readonly holders?: readonly Holder[];
  /** Makes the folders above it that are missing. */
  readonly makeFolders: boolean;
  readonly ifMissing: boolean;
  readonly ifVersion: string | null;
  /** The id of the content that the name must have: a file becomes live, or is emptied. */
  readonly ifContent: string | null;
  /** Its content is made of those of these files, gets the id of `content`, and the folder is removed. */
  readonly compose?: Composition | undefined;
  /** The time of modification that a client keeps for the file; otherwise that of the change. */
  readonly modifiedMs?: number | undefined;
  readonly attributes?: AttributeChanges | undefined;
}

export interface Composition {
  readonly folder: string;
  /** Files of the folder, which must have these versions. */
  readonly files: readonly (readonly [name: string, version: string])[];
}

export interface FolderChange {
  readonly kind: "folder";
  readonly path: string;
  readonly makeFolders: boolean;
  readonly attributes?: AttributeChanges | undefined;
}

export interface MoveChange extends Affecting {
  readonly kind: "move" | "copy";
  readonly from: string;
  readonly to: string;
  readonly makeFolders: boolean;
  /** What there may be at the target, to be replaced. */
  readonly over: "nothing" | "file" | "anything";
  /** A copy of a folder: with everything in it. */
  readonly isDeep: boolean;
  readonly ifVersion: string | null;
  /** Of the name at the target, beside those that it brings along. */
  readonly attributes?: AttributeChanges | undefined;
}

export interface RemoveChange extends Affecting {
  readonly kind: "remove";
  readonly path: string;
  readonly isDeep: boolean;
  /** Refuses a folder in which there is any file, however deep. */
  readonly foldersOnly?: boolean | undefined;
  /** Removes folders above it, within this one, that are empty then and have no attributes. */
  readonly pruneIn?: string | undefined;
  readonly ifVersion: string | null;
}

/** Sets the time of modification of a file, or attributes of a name. The version stays. */
export interface TouchChange extends Affecting {
  readonly kind: "touch";
  readonly path: string;
  readonly modifiedMs?: number | undefined;
  readonly attributes?: AttributeChanges | undefined;
  readonly ifVersion: string | null;
}

/** Changes the list of nodes. */
export type NodesChange = { readonly kind: "nodes"; readonly change: NodeChange };

/** Places a content on other nodes. */
export interface PlaceChange {
  readonly kind: "place";
  readonly content: string;
  readonly before: readonly string[];
  readonly nodes: readonly string[];
  /** From the names: until it ends, the node that is new does not collect the content. */
  readonly ticket: string;
  /** As those of a put, with each node that is new. */
  readonly holders: readonly Holder[];
}

/** Sets the quota of a folder, or removes it. What the folder has already stays. */
export interface QuotaChange {
  readonly kind: "quota";
  readonly path: string;
  readonly quota: Quota | null;
}

/** Copies a folder to the path of a snapshot of it, in which nothing changes any more. */
export interface SnapshotChange extends Affecting {
  readonly kind: "snapshot";
  readonly path: string;
}

export type NameChange =
  | PutChange
  | FolderChange
  | MoveChange
  | RemoveChange
  | TouchChange
  | QuotaChange
  | SnapshotChange;
export type Change = NameChange | NodesChange | PlaceChange;

/** A content and the nodes that it is on. */
export interface PlacedContent extends Part {
  readonly nodes: readonly string[];
  /** The asking node has to place it on these nodes, with this ticket. */
  readonly step?: { readonly nodes: readonly string[]; readonly ticket: string };
}

export interface Found {
  readonly path: string;
  readonly entry: Entry;
  /** Of a folder. */
  readonly usage?: Usage;
}

/** Operations on names, at their primary. */
export type NamesOperation =
  | { readonly kind: "lookup"; readonly path: string }
  /** Files in order of their paths, wherever they are below the prefix. */
  | { readonly kind: "files"; readonly prefix: string; readonly after: string; readonly limit: number }
  /** What is in a folder, folders with a slash at the end of their names in order. */
  | {
      readonly kind: "children";
      readonly path: string;
      readonly prefix?: string | undefined;
      readonly after: string;
      readonly limit: number;
    }
  /**
   * Announces a content, which alone may be named then. Fails as the change would now.
   *
   * - `avoid`: nodes that cannot be reached, where others can take the content
   */
  | {
      readonly kind: "begin";
      readonly change: PutChange;
      readonly avoid?: readonly string[];
      /** Only if it is announced still. */
      readonly isStill?: boolean;
    }
  /** Withdraws an announcement: its upload has failed, and no change will name the content. */
  | { readonly kind: "end"; readonly content: string }
  | { readonly kind: "commit"; readonly change: Change }
  /**
   * Those of these contents that no name has and that no change can name without a new announcement; of a
   * node, also those that have names and are not to be there.
   */
  | { readonly kind: "unnamed"; readonly contents: readonly string[]; readonly node?: string }
  /** Completes the copies of the names, also of that node, which does not know the state of its own. */
  | { readonly kind: "complete"; readonly lacks: string }
  /** Contents of all files that are on that node, in pages. */
  | { readonly kind: "contents"; readonly node: string; readonly after: string; readonly limit: number }
  /** The nodes that a content is on. */
  | { readonly kind: "placement"; readonly content: string }
  /** The list of nodes, and how many contents each has. */
  | { readonly kind: "list" }
  /** Changes at a folder and in it, after that number of that log; null: none yet. */
  | {
      readonly kind: "changes";
      readonly folder: string;
      readonly after: number | null;
      readonly feed: string;
      readonly limit: number;
    }
  /**
   * All changes after that number, as soon as there is one, or after a while. Without a page, not all of them
   * are kept.
   */
  | { readonly kind: "news"; readonly after: number; readonly feed: string; readonly limit: number };

export interface NamesResult {
  /** What the path names; after a change, what it names now. Null: nothing. */
  readonly entry?: Entry | null;
  /** A looked up folder: its use, and what the quotas of it and the folders above leave. */
  readonly usage?: Usage;
  readonly left?: Quota;
  readonly found?: readonly Found[];
  /** Where the next page begins; absent on the last. */
  readonly next?: string;
  readonly contents?: readonly PlacedContent[];
  /** The nodes of the content that was announced or looked at. */
  readonly nodes?: readonly string[];
  readonly list?: NodeList;
  readonly counts?: Readonly<Record<string, number>>;
  /** Changes that were asked for, and the log that has them. */
  readonly page?: LogPage;
  readonly feed?: string;
  /** The number of the last change. */
  readonly last?: number;
  readonly unnamed?: readonly string[];
  /** A change: whether the name existed before. */
  readonly existed?: boolean;
  /** A change: a majority has it, so it is true whether or not the lease still runs. */
  readonly isDone?: boolean;
  /** A change was not made: these live contents must be sealed first. */
  readonly unsealed?: readonly string[];
}
