import type { World, Leases } from "leasehold/common";
import type { Peers } from "./messages.js";
import type { Replica } from "./replica.js";

/** What the parts of one node share. */
export interface NodeParts {
  readonly node: string;
  /** All nodes, this one among them. */
  readonly nodes: readonly string[];
  readonly world: World;
  readonly leases: Leases;
  readonly replica: Replica;
  /** Also to this node itself, without a network. */
  readonly peers: Peers;
  readonly settings: FilesSettings;
  /** Whether this node's disk counts. */
  isJoined(): boolean;
}

export interface FilesSettings {
  /** Of new files, in bytes. */
  readonly blockSize: number;
  /** For which the lease of a file is asked, ms. */
  readonly ttlMs: number;
  /** A read counts only if the lease has so long to run when it was done, ms. */
  readonly leaseMarginMs: number;
  /** The longest that one operation tries, ms. */
  readonly operationTimeoutMs: number;
  /** The longest wait for one answer of another node, ms. */
  readonly answerTimeoutMs: number;
  /** A file that nobody has used for so long gives its lease back, ms. */
  readonly idleMs: number;
  /** Between two blocks that the scrub reads, ms. */
  readonly scrubPauseMs: number;
}
