import type { World, Leases } from "leasehold/common";
import type { NodeEntry } from "../names/nodes.js";
import type { Peers } from "./messages.js";
import type { Replica } from "./replica.js";

/** Dependencies and settings shared by the parts of one node. */
export interface NodeParts {
  readonly node: string;
  /** The nodes that keep the names and the files that are written in place. */
  readonly nodes: readonly string[];
  /** All known nodes. */
  readonly everybody: readonly string[];
  /** Nodes that did not answer when they were last asked. */
  readonly unreachable: readonly string[];
  /** The initial nodes of the cluster, and the disks that they had then. */
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
   * How long an announced content may be named, ms. A longer upload announces the content again, and a
   * majority confirms that it still has it.
   */
  readonly announcedMs: number;
  /** How long a content without a name must be unused before a node collects it, ms. */
  readonly graceMs: number;
  /**
   * How many bytes per second a node copies of contents that its disk lacks or that were placed on it anew.
   */
  readonly rebalanceBytesPerS: number;
  /** A snapshot of the names begins after this many records, if there are few names. */
  readonly recordsMin: number;
  /** How many of the last changes of names are kept for followers. */
  readonly keptChanges: number;
  /** The pause between two pages of contents that are compared with the names, ms. */
  readonly sweepPauseMs: number;
}
