import type { Holder } from "../names/nodes.js";
import type { NamesOperation, NamesResult } from "../names/types.js";
import type { FileStat } from "../types.js";

/** Requests between nodes. Epochs are decimal texts, tags and headers the texts of `records.ts`. */
export interface Asks {
  /** Refuses all earlier epochs from now on, and returns the state of the copy. */
  promise: { readonly path: string; readonly epoch: string };
  /** The tags of the blocks after that index, from the process that has promised. */
  blocks: { readonly path: string; readonly after: number; readonly incarnation: string };
  /**
   * Writes a block. The content is the body.
   *
   * - `spare`: data of a program, which leaves the disk its reserve
   * - `later`: a copy that need not be on disk before the following header or mark
   */
  put: BlockName & { readonly epoch: string; readonly spare: boolean; readonly later?: boolean };
  /** A header; `null` in a copy: the file does not exist, and nothing of an earlier epoch remains. */
  header: { readonly path: string; readonly epoch: string; readonly header: string | null };
  /** Removes a block from before this epoch that the file does not have. */
  drop: { readonly path: string; readonly epoch: string; readonly index: number };
  /** Marks the copy as complete, for the process with this incarnation. */
  mark: { readonly path: string; readonly epoch: string; readonly incarnation: string };
  /** The content of a block in exactly this version. */
  fetch: BlockName;
  /** The state of these files here. */
  list: { readonly paths: readonly string[] };
  standing: Record<never, never>;
  /** Registers a node's new disk: votes of earlier generations count no more. */
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
    /** The sender can't be the primary, and has found none: the node becomes it if it can. */
    readonly begins?: boolean;
  };
  /** A block of a content that never changes. Its bytes are the body. */
  piece: PieceName & { readonly tag: string };
  /**
   * Makes a content durable, after fetching what is missing here from other nodes for a while. The body is
   * the first block, if `tag` is not null.
   */
  hold: {
    readonly content: string;
    readonly blocks: number;
    readonly checksum: number;
    readonly tag: string | null;
    /** Nodes that may have what is missing. */
    readonly nodes: readonly string[];
  };
  /** A block of a content that never changes. */
  bit: PieceName;
  /** The upload of this content was given up before it could be named. */
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

/** How often the disk of each node was replaced, as far as the answering node knows. */
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
  /** The node's process: a later one may lack unsynced changes, or the disk. */
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
  /** Blocks that are not here yet: 0 if the whole content is on disk. */
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
 * Operations on one file that is written in place. Only `sealed` ones are done when it is sealed: their
 * callers know that its name may have another content.
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
  /** No change is accepted from then on. */
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
  /** The number of nodes that have all of the file. */
  readonly nodes?: number;
}

/** Blocks per answer, which stays far below the limit of a frame. */
export const blocksPerPage = 5_000;
export const pathsPerPage = 1_000;
/** Copied blocks per sync. The last of them is answered after the sync. */
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
   * Rejects with a {@link LeaseholdError}: the other node's own, or `UNREACHABLE` when the request has
   * certainly not arrived, or `TIMEOUT` when it may have. `operate` arrives at most once; the others may
   * arrive repeatedly and late.
   */
  ask<K extends Kind>(node: string, kind: K, ask: Asks[K], options: AskOptions): Promise<Answered<K>>;
}

/** Answers requests at a node. */
export interface Answerer {
  answer<K extends Kind>(kind: K, ask: Asks[K], body: Uint8Array): Promise<Answered<K>>;
}

export const noBytes = new Uint8Array(0);
