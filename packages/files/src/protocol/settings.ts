import type { World, Leases } from "leasehold/common";
import type { NodeEntry } from "../names/nodes.js";
import type { Peers } from "./messages.js";
import type { Replica } from "./replica.js";

/** Dependencies and settings that the parts of one node share. */
export interface NodeParts {
  readonly node: string;
  /** The nodes that keep the names, and files that are written in place. */
  readonly nodes: readonly string[];
  /** All nodes that are known. */
  readonly everybody: readonly string[];
  /** Nodes that did not answer when they were last asked. */
  readonly unreachable: readonly string[];
  /** The nodes that the cluster began with, and their disks of then. */
  readonly founders: readonly Pick<NodeEntry, "id" | "address" | "disk">[];
  readonly world: World;
  readonly leases: Leases;
  readonly replica: Replica;
  /** Requests to all nodes, including this one, without a network. */
  readonly peers: Peers;
  readonly settings: FilesSettings;
  /** Whether this node's disk counts. */
  isJoined(): boolean;
}

export interface FilesSettings {
  /** Block size of new files, in bytes. */
  readonly blockSize: number;
  /** TTL of a file's lease, ms. */
  readonly ttlMs: number;
  /** The time that a lease must still run when a read is done, ms. */
  readonly leaseMarginMs: number;
  /** Time limit of one operation, ms. */
  readonly operationTimeoutMs: number;
  /** Timeout of one answer of another node, ms. */
  readonly answerTimeoutMs: number;
  /** Idle time after which a file's lease is released, ms. */
  readonly idleMs: number;
  /** The pause between two blocks of the scrub, ms. */
  readonly scrubPauseMs: number;
  /**
   * How long an announced content may be named, ms. An upload that takes longer announces it again, and a
   * majority confirms that it still has it.
   */
  readonly announcedMs: number;
  /** How long a content that no name has must be unused before a node collects it, ms. */
  readonly graceMs: number;
  /** Bytes of contents that a node fetches per second to fill its disk, or because they are placed anew. */
  readonly rebalanceBytesPerS: number;
  /** Records of names after which a snapshot of them begins, if there are few names. */
  readonly recordsMin: number;
  /** The last changes of names that are kept for those who follow them. */
  readonly keptChanges: number;
  /** The pause between two pages of contents that are compared with their names, ms. */
  readonly sweepPauseMs: number;
}
