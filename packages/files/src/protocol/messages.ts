import type { Holder } from "../names/nodes.js";
import type { NamesOperation, NamesResult } from "../names/types.js";
import type { FileStat } from "../types.js";

/** Requests between nodes. Epochs are decimal texts; tags and headers are the texts of `records.ts`. */
export interface Asks {
  /** Promises to refuse all earlier epochs, and returns the state of the copy. */
  promise: { readonly path: string; readonly epoch: string };
  /** The tags of the blocks after that index, from the process that made the promise. */
  blocks: { readonly path: string; readonly after: number; readonly incarnation: string };
  /**
   * Writes a block. The content is the body.
   * - `spare`: a program's data, which must leave the disk its reserve
   * - `later`: part of a copy; needs no sync before the following header or mark
   */
  put: BlockName & { readonly epoch: string; readonly spare: boolean; readonly later?: boolean };
  /**
   * A header. In a copy, `null` means that the file does not exist and that nothing of an earlier epoch
   * remains.
   */
  header: { readonly path: string; readonly epoch: string; readonly header: string | null };
  /** Removes a block of an earlier epoch that the file does not have. */
  drop: { readonly path: string; readonly epoch: string; readonly index: number };
  /** Marks the copy as complete, if the process has this incarnation. */
  mark: { readonly path: string; readonly epoch: string; readonly incarnation: string };
  /** The content of a block in exactly this version. */
  fetch: BlockName;
  /** The state of these files here. */
  list: { readonly paths: readonly string[] };
  standing: Record<never, never>;
  /** Registers a node's new disk: votes of earlier generations no longer count. */
  register: { readonly node: string; readonly generation: number; readonly store: string };
  /** The promised epochs of the files after that path. */
  promises: { readonly after: string };
  /** Whether the file's primary is at that node. */
  primary: { readonly path: string };
  /**
   * An operation for the file's primary, with its time limit. Its body is the data to write; the answer's is
   * the data read.
   */
  operate: {
    readonly path: string;
    readonly operation: OperationAny;
    readonly timeoutMs: number;
    /**
     * Sent by a node that can't be the primary and has found none: the receiver becomes the primary if it
     * can.
     */
    readonly begins?: boolean;
  };
  /** A block of an immutable content. Its bytes are the body. */
  piece: PieceName & { readonly tag: string };
  /**
   * Makes a content durable, first fetching any missing blocks from other nodes, for a limited time. The body
   * is the first block, if `tag` is not null.
   */
  hold: {
    readonly content: string;
    readonly blocks: number;
    readonly checksum: number;
    readonly tag: string | null;
    /** Nodes that may have the missing blocks. */
    readonly nodes: readonly string[];
  };
  /** Reads a block of an immutable content. */
  bit: PieceName;
  /** The upload of this content was abandoned before the content was named. */
  discard: { readonly content: string };
}

interface PieceName {
  readonly content: string;
  readonly index: number;
}

interface BlockName {
  readonly path: string;
  readonly index: number;
  readonly tag: string;
}

export type Kind = keyof Asks;

/** How often each node's disk was replaced, as far as the answering node knows. */
export type Generations = Readonly<Record<string, number>>;

/** The fields that make an answer count as a vote. */
export interface Vote {
  readonly node: string;
  readonly generations: Generations;
  /** `FileMeta.base`; null if the node does not know the file. */
  readonly base: string | null;
}

export interface PromiseAnswer extends Vote {
  readonly header: string | null;
  /** The node's process. A later process may lack unsynced changes, or even the disk. */
  readonly incarnation: string;
}

export interface Answers {
  promise: PromiseAnswer;
  /** A page with fewer than `blocksPerPage` is the last one. */
  blocks: { readonly blocks: readonly (readonly [index: number, tag: string | null])[] };
  put: Vote;
  header: Vote;
  drop: Vote;
  mark: Vote;
  fetch: Record<never, never>;
  list: { readonly files: readonly ListedFile[]; readonly node: string; readonly generations: Generations };
  standing: Standing;
  register: Record<never, never>;
  promises: { readonly promises: readonly (readonly [path: string, epoch: string])[] };
  primary: { readonly isHere: boolean };
  operate: OperationAnswer;
  piece: Record<never, never>;
  hold: HoldAnswer;
  bit: { readonly tag: string };
  discard: Record<never, never>;
}

export interface HoldAnswer extends Holder {
  /** The number of blocks still missing here; 0 if the whole content is on disk. */
  readonly missing: number;
}

export interface ListedFile {
  readonly path: string;
  readonly base: string | null;
  readonly header: string | null;
  /** The tag of the newest record. */
  readonly newest: string | null;
}

/** The state that a node reports. */
export interface Standing {
  readonly node: string;
  /** The nodes that keep the names, as far as it knows. */
  readonly nodes: readonly string[];
  readonly store: string;
  readonly joined: boolean;
  /** The stores of the beginning of the cluster; null until the node has joined. */
  readonly founders: Readonly<Record<string, string>> | null;
  readonly generations: Generations;
}

/**
 * Operations on one file that is written in place. After it is sealed only those marked `sealed` are served,
 * because their callers know that its name may have another content.
 */
export type Operation =
  | { readonly kind: "stat"; readonly sealed?: boolean }
  /** `lacks`: a node that does not know the state of its copy. */
  | { readonly kind: "sync"; readonly lacks?: string; readonly sealed?: boolean }
  | { readonly kind: "open"; readonly create: "never" | "missing" | "always" | "replace" }
  | { readonly kind: "read"; readonly offset: number; readonly length: number; readonly sealed?: boolean }
  | { readonly kind: "write"; readonly offset: number }
  | { readonly kind: "append" }
  | { readonly kind: "truncate"; readonly size: number }
  | { readonly kind: "remove"; readonly ifVersion: string | null }
  /** From then on no change is accepted. */
  | { readonly kind: "seal"; readonly ifVersion: string | null };

export type OperationAny = Operation | NamesOperation;
export type ResultAny = OperationResult | NamesResult;

/** `null`: the primary is not here, and the operation was not begun. */
export type OperationAnswer = { readonly result: ResultAny | null };

export interface OperationResult {
  readonly stat: FileStat;
  readonly blockSize: number;
  /** The offset of the appended bytes. */
  readonly offset?: number;
  /** The number of nodes that have the whole file. */
  readonly nodes?: number;
}

/** Blocks per answer. This stays far below the limit of a frame. */
export const blocksPerPage = 5_000;
export const pathsPerPage = 1_000;
/** Copied blocks per sync. The last of them is answered only after the sync. */
export const copiesPerSync = 256;

/** The limit of one call of a program, in bytes. */
export const bytesPerCallMax = 4 * 2 ** 20;

export interface Answered<K extends Kind> {
  readonly answer: Answers[K];
  readonly body: Uint8Array;
}

export interface AskOptions {
  readonly body?: Uint8Array;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Requests to other nodes. */
export interface Peers {
  /**
   * Rejects with a {@link LeaseholdError}: the other node's own, `UNREACHABLE` if the request certainly did
   * not arrive, or `TIMEOUT` if it may have. `operate` arrives at most once; other requests may arrive
   * repeatedly and late.
   */
  ask<K extends Kind>(node: string, kind: K, ask: Asks[K], options: AskOptions): Promise<Answered<K>>;
}

/** Answers requests at a node. */
export interface Answerer {
  answer<K extends Kind>(kind: K, ask: Asks[K], body: Uint8Array): Promise<Answered<K>>;
}

export const noBytes = new Uint8Array(0);
