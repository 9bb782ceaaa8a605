/** Names of files: a path names a content, and each change of names happens completely or not at all. */
import type { LogPage } from "./change-log.js";
import type { Holder, NodeChange, NodeList } from "./nodes.js";

/** The content of a name. */
export interface Content {
  /** Globally unique and never reused. Empty for a file of 0 bytes, which has no blocks. */
  readonly id: string;
  /** The file is written in place, so its primary knows its size and version. Other contents never change. */
  readonly isLive: boolean;
  /** In bytes. 0 if live. */
  readonly size: number;
  readonly blockSize: number;
  /** Computed over the tags of the content's blocks, which are checksums of their bytes. */
  readonly checksum: number;
  /**
   * The contents that this one consists of, in order. Disks then store only those, and nothing under this
   * content's own id.
   */
  readonly parts?: readonly Part[] | undefined;
}

/** An immutable, non-empty content as a part of another. */
export type Part = Pick<Content, "id" | "size" | "blockSize" | "checksum">;

/** The content of a file of 0 bytes. */
export const emptyContent: Content = { id: "", isLive: false, size: 0, blockSize: 1, checksum: 0 };

/** Strings stored with a name alongside its content, keyed by name. */
export type Attributes = Readonly<Record<string, string>>;

/** Attributes to set; null removes one. */
export type AttributeChanges = Readonly<Record<string, string | null>>;

/** What a folder contains at any depth: the bytes of its files, and the number of its files and folders. */
export interface Usage {
  readonly bytes: number;
  readonly files: number;
  /** The number of snapshots of this folder and the folders in it. */
  readonly snapshots: number;
}

/** The greatest use that a change may produce; null: no limit. */
export interface Quota {
  readonly bytes: number | null;
  readonly files: number | null;
}

export interface FolderEntry {
  readonly kind: "folder";
  readonly modifiedMs: number;
  /** Absent: none. A quota moves with its folder and is not copied. */
  readonly quota?: Quota | undefined;
  /** Absent: none. */
  readonly attributes?: Attributes | undefined;
}

export interface FileEntry {
  readonly kind: "file";
  readonly content: Content;
  /** New for each change of the name's content, and never reused. */
  readonly version: string;
  readonly modifiedMs: number;
  /** Absent: none. */
  readonly attributes?: Attributes | undefined;
}

export type Entry = FolderEntry | FileEntry;

/** A name in its folder. Renaming a folder takes a single change, whatever is in it. */
export interface Name {
  /** Never reused. The root is 0. */
  readonly id: number;
  /** The id of its folder. */
  readonly parent: number;
  readonly name: string;
  readonly entry: Entry;
}

/** What a change makes of the name with that id; null: the name and everything below it are removed. */
export type Fact = readonly [id: number, name: Name | null];

/** The nodes on which a content is placed. The facts of names with that content are in the same record. */
export type Placement = readonly [content: string, nodes: readonly string[]];

/** Live contents that a change moves, removes or shares: they must accept no more writes. */
interface Affecting {
  /** Ids of live contents that have been sealed. Their versions were checked then. */
  readonly sealed: readonly string[];
}

export interface PutChange extends Affecting {
  readonly kind: "put";
  readonly path: string;
  readonly content: Content;
  /** Nodes that have the whole content on disk: a majority of those for which it was announced. */
  readonly holders?: readonly Holder[];
  /** Creates missing folders above the name. */
  readonly makeFolders: boolean;
  readonly ifMissing: boolean;
  readonly ifVersion: string | null;
  /** The id of the content that the name must have, for a file that becomes live or is emptied. */
  readonly ifContent: string | null;
  /**
   * The content consists of the contents of these files and gets the id in `content`. The folder is removed.
   */
  readonly compose?: Composition | undefined;
  /** The modification time that a client sets for the file. Default: the time of the change. */
  readonly modifiedMs?: number | undefined;
  readonly attributes?: AttributeChanges | undefined;
}

export interface Composition {
  readonly folder: string;
  /** Files in the folder, and the versions that they must have. */
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
  /** What may be replaced at the target. */
  readonly over: "nothing" | "file" | "anything";
  /** For a copy of a folder: whether to copy everything in it. */
  readonly isDeep: boolean;
  readonly ifVersion: string | null;
  /** Attributes of the target name, in addition to those that are moved or copied. */
  readonly attributes?: AttributeChanges | undefined;
}

export interface RemoveChange extends Affecting {
  readonly kind: "remove";
  readonly path: string;
  readonly isDeep: boolean;
  /** Refuses a folder that has a file in it, at any depth. */
  readonly foldersOnly?: boolean | undefined;
  /** Removes parent folders below this one that become empty and have no attributes. */
  readonly pruneIn?: string | undefined;
  readonly ifVersion: string | null;
}

/** Sets the modification time of a file, or attributes of a name. The version stays the same. */
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
  /** The ticket from the names: until it expires, the new node does not collect the content. */
  readonly ticket: string;
  /** As for a put, including each new node. */
  readonly holders: readonly Holder[];
}

/** Sets or removes the quota of a folder. What the folder already contains stays. */
export interface QuotaChange {
  readonly kind: "quota";
  readonly path: string;
  readonly quota: Quota | null;
}

/** Copies a folder to the path of one of its snapshots, which is then read-only. */
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

/** A content and the nodes on which it is placed. */
export interface PlacedContent extends Part {
  readonly nodes: readonly string[];
  /** The asking node has to place the content on these nodes, with this ticket. */
  readonly step?: { readonly nodes: readonly string[]; readonly ticket: string };
}

export interface Found {
  readonly path: string;
  readonly entry: Entry;
  /** For a folder. */
  readonly usage?: Usage;
}

/** Operations on names, at their primary. */
export type NamesOperation =
  | { readonly kind: "lookup"; readonly path: string }
  /** Files in path order, at any depth below the prefix. */
  | { readonly kind: "files"; readonly prefix: string; readonly after: string; readonly limit: number }
  /** What a folder contains, in order; folders sort with a slash at the end of their names. */
  | {
      readonly kind: "children";
      readonly path: string;
      readonly prefix?: string | undefined;
      readonly after: string;
      readonly limit: number;
    }
  /**
   * Announces a content; only announced contents can be named. Fails if the change would now fail.
   * - `avoid`: nodes that cannot be reached, when others can take the content
   */
  | {
      readonly kind: "begin";
      readonly change: PutChange;
      readonly avoid?: readonly string[];
      /** Only if it is still announced. */
      readonly isStill?: boolean;
    }
  /** Withdraws an announcement because the upload has failed and no change will name the content. */
  | { readonly kind: "end"; readonly content: string }
  | { readonly kind: "commit"; readonly change: Change }
  /**
   * Which of these contents have no name and can't be named without a new announcement. For a node, also
   * those that have names but don't belong on it.
   */
  | { readonly kind: "unnamed"; readonly contents: readonly string[]; readonly node?: string }
  /** Completes the copies of the names, including the copy of that node, which does not know its state. */
  | { readonly kind: "complete"; readonly lacks: string }
  /** The contents of all files on that node, in pages. */
  | { readonly kind: "contents"; readonly node: string; readonly after: string; readonly limit: number }
  /** The nodes on which a content is placed. */
  | { readonly kind: "placement"; readonly content: string }
  /** The list of nodes, and the number of contents on each. */
  | { readonly kind: "list" }
  /** Changes at a folder and in it, after that number of that log. Null: no number yet. */
  | {
      readonly kind: "changes";
      readonly folder: string;
      readonly after: number | null;
      readonly feed: string;
      readonly limit: number;
    }
  /**
   * All changes after that number: as soon as there is one, or after a while. No page if some of them are no
   * longer kept.
   */
  | { readonly kind: "news"; readonly after: number; readonly feed: string; readonly limit: number };

export interface NamesResult {
  /** What the path names; after a change, what it names now. Null if nothing. */
  readonly entry?: Entry | null;
  /** For a looked-up folder: its use, and what the quotas of the folder and those above it leave. */
  readonly usage?: Usage;
  readonly left?: Quota;
  readonly found?: readonly Found[];
  /** Where the next page begins. Absent on the last one. */
  readonly next?: string;
  readonly contents?: readonly PlacedContent[];
  /** The nodes of the content that was announced or looked up. */
  readonly nodes?: readonly string[];
  readonly list?: NodeList;
  readonly counts?: Readonly<Record<string, number>>;
  /** The requested changes, and their log. */
  readonly page?: LogPage;
  readonly feed?: string;
  /** The number of the last change. */
  readonly last?: number;
  readonly unnamed?: readonly string[];
  /** For a change: whether the name existed before. */
  readonly existed?: boolean;
  /** For a change: a majority has it, so it is valid whether or not the lease still runs. */
  readonly isDone?: boolean;
  /** The change was not made: these live contents must be sealed first. */
  readonly unsealed?: readonly string[];
}
