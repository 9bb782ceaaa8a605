import type { FileStat } from "../types.js";

/** What nodes ask each other. Epochs are decimal texts, tags and headers the texts of `records.ts`. */
export interface Asks {
  /** Refuse all epochs before this one from now on, and tell what you have. */
  promise: { readonly path: string; readonly epoch: string };
  /** The tags of the blocks behind that index, of the process that has promised. */
  blocks: { readonly path: string; readonly after: number; readonly incarnation: string };
  /**
   * A block. The content is the body.
   *
   * - `spare`: what a program writes, which leaves the disk its reserve
   * - `later`: a copy that need not be on disk before the header or the mark that follows is
   */
  put: BlockName & { readonly epoch: string; readonly spare: boolean; readonly later?: boolean };
  /** `null` as a copy: there is no such file, and none that an earlier epoch has left. */
  header: { readonly path: string; readonly epoch: string; readonly header: string | null };
  /** Remove a block that the file does not have: it is from before this epoch. */
  drop: { readonly path: string; readonly epoch: string; readonly index: number };
  /** You have all of the file now, of which that process was told. */
  mark: { readonly path: string; readonly epoch: string; readonly incarnation: string };
  /** The content of a block in exactly this version. */
  fetch: BlockName;
  list: { readonly prefix: string; readonly after: string; readonly limit: number };
  standing: Record<never, never>;
  /** A node's disk is a new one: what was said by that of an earlier generation counts no more. */
  register: { readonly node: string; readonly generation: number; readonly store: string };
  /** The epochs that were promised, for the files behind that path. */
  promises: { readonly after: string };
  /** Is the primary of this file at your node? */
  primary: { readonly path: string };
  /**
   * An operation for the file's primary, which tries for so long. Its body is what to write; the answer's is
   * what was read.
   */
  operate: { readonly path: string; readonly operation: Operation; readonly timeoutMs: number };
}

interface BlockName {
  readonly path: string;
  readonly index: number;
  readonly tag: string;
}

export type Kind = keyof Asks;

/** How often the disk of each node was replaced, as far as the one that answers knows. */
export type Generations = Readonly<Record<string, number>>;

/** What an answer needs to count as a vote. */
export interface Vote {
  readonly node: string;
  readonly generations: Generations;
  /** Of `FileMeta`; null if it does not know the file. */
  readonly base: string | null;
}

export interface PromiseAnswer extends Vote {
  readonly header: string | null;
  /** The node's process: one that is started later may lack what this one has not synced, or its disk. */
  readonly incarnation: string;
}

export interface Answers {
  promise: PromiseAnswer;
  /** Fewer than `blocksPerPage` are the last. */
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
}

export interface ListedFile {
  readonly path: string;
  readonly base: string | null;
  readonly header: string | null;
  /** The tag of the newest record. */
  readonly newest: string | null;
}

/** What a node says of itself. */
export interface Standing {
  readonly node: string;
  /** The list of nodes that it was started with. */
  readonly nodes: readonly string[];
  readonly store: string;
  readonly joined: boolean;
  /** The stores with which the cluster began; null until the node has joined. */
  readonly founders: Readonly<Record<string, string>> | null;
  readonly generations: Generations;
}

/** What programs do with one file. */
export type Operation =
  | { readonly kind: "stat" }
  /** `lacks`: a node that does not know what it has of the file. */
  | { readonly kind: "sync"; readonly lacks?: string }
  | { readonly kind: "open"; readonly create: "never" | "missing" | "always" | "replace" }
  | { readonly kind: "read"; readonly offset: number; readonly length: number }
  | { readonly kind: "write"; readonly offset: number }
  | { readonly kind: "append" }
  | { readonly kind: "truncate"; readonly size: number }
  | { readonly kind: "remove"; readonly ifVersion: string | null };

/** `null`: the primary is not here, and nothing was done. */
export type OperationAnswer = { readonly result: OperationResult | null };

export interface OperationResult {
  readonly stat: FileStat;
  readonly blockSize: number;
  /** Where the bytes were appended. */
  readonly offset?: number;
  /** How many nodes have all of the file. */
  readonly nodes?: number;
}

/** In one answer, so that it stays far below what a connection takes. */
export const blocksPerPage = 5_000;
export const pathsPerPage = 1_000;
/** Of the blocks that are copied, every so many-th is on disk, with those before it, when it is answered. */
export const copiesPerSync = 256;

/** The most that one call of a program reads or writes, in bytes. */
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

/** The way to the other nodes. */
export interface Peers {
  /**
   * Rejects with a {@link LeaseholdError}: the other's own, or `UNREACHABLE` when the question has certainly
   * not arrived, or `TIMEOUT` when it may have. `operate` arrives at most once; the others may arrive again
   * and late.
   */
  ask<K extends Kind>(node: string, kind: K, ask: Asks[K], options: AskOptions): Promise<Answered<K>>;
}

/** Who answers at a node. */
export interface Answerer {
  answer<K extends Kind>(kind: K, ask: Asks[K], body: Uint8Array): Promise<Answered<K>>;
}

export const noBytes = new Uint8Array(0);
