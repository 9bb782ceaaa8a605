import type { Random } from "leasehold/common";
import type { RaftLimits, Recovered } from "../raft/api.js";
import type { MemberId } from "../raft/types.js";
import { operationsMax } from "../state/check.js";
import type { Checksum } from "../state/hash.js";
import { pieceBytesDefault } from "../state/snapshot.js";
import type { CoreMember } from "../state/members.js";
import type { CoreState } from "../state/state.js";
import type { SelfDescription } from "./roll.js";

export interface ReplicaOptions {
  readonly id: MemberId;
  /** Id for a new cluster; once the log has one, that counts. */
  readonly cluster: bigint;
  /** The log found on disk; `founding` or `joining` for an empty disk. */
  readonly recovered: Recovered;
  /** Restored from `recovered.snapshot`; a new one if none was ever written. */
  readonly state: CoreState;
  readonly random: Random;
  /** For comparing servers: the same on all. */
  readonly checksum: Checksum;
  /** Interval at which the leader compares the keys of all servers, ms. Default 0: never. */
  readonly corruptCheckMs?: number | undefined;
  /** Interval of `tick`, ms. etcd's heartbeat interval. */
  readonly tickMs: number;
  /** Ticks of the minimum election timeout. Default 10. */
  readonly electionTicks?: number;
  /**
   * How long a server votes for no other candidate after hearing a leader, by its steady clock, ms. Servers
   * may differ in it. Default: half of the minimum election timeout.
   */
  readonly holdMs?: number;
  /** ρ, the maximum rate error of the servers' steady clocks. Default 0.1. */
  readonly clockRateError?: number;
  /**
   * Interval at which remaining lease times are replicated, so that they survive a change of leader; ms. 0:
   * never. Default 5 minutes.
   */
  readonly clusterTimeMs?: number;
  /** The leader's compaction of old revisions. Default: none; clients compact. */
  readonly autoCompaction?: AutoCompaction | undefined;
  /** Bytes of the state beyond which commands that need space are refused; no bound by default. */
  readonly quotaBytes?: number | undefined;
  /** The members when this server's data directory was made: used until the state lists them. */
  readonly founding?: readonly CoreMember[];
  /** Announced to all members. Default: nothing is. */
  readonly self?: SelfDescription;
  /** The newest version that this server supports. */
  readonly newestVersion?: number | undefined;
  readonly limits?: Partial<ReplicaLimits>;
  readonly raftLimits?: Partial<RaftLimits>;
}

/** The minimum history to keep. */
export type AutoCompaction =
  | { readonly mode: "revision"; readonly keepRevisions: number }
  | { readonly mode: "periodic"; readonly keepMs: number };

export const electionTicksDefault = 10;
/**
 * As a share of the minimum election timeout. A leader is heard every tenth of that; and a restarted server
 * is free to vote before any that restarted with it would stand.
 */
export const holdShare = 0.5;
/** As etcd's lease checkpoints. */
export const clusterTimeMsDefault = 300_000;

/** Bounds of memory and work. */
export interface ReplicaLimits {
  /** Pending requests. */
  readonly requestsMax: number;
  /** Bytes of their commands. */
  readonly requestBytesTotalMax: number;
  /** Per transaction, including nested ones; more is `too many operations in txn request`. */
  readonly operationsMax: number;
  /** Bytes of one command; more is `request is too large`. */
  readonly requestBytesMax: number;
  /** Keys and values in one answer, bytes as the state counts them; more is refused. */
  readonly answerBytesMax: number;
  /** Requests of other servers that wait for a round. */
  readonly asksMax: number;
  /** Concurrent rounds of heartbeats that confirm leadership. */
  readonly roundsMax: number;
  /**
   * Work per turn, for each kind: applied entries, clients' reads, watches in history, removal of compacted
   * versions. Counted in keys, versions, changes; the rest waits for the next turn.
   */
  readonly unitsPerTurn: number;
  /** Leases in one proposal that ends them, or that writes their remaining times. */
  readonly leasesPerBatch: number;
  /** Applied entries between snapshots. */
  readonly snapshotEntries: number;
  /**
   * Bytes of applied entries between snapshots, if the state is smaller; otherwise the size of the state:
   * snapshots then write at most about twice as much as clients.
   */
  readonly snapshotBytes: number;
  /** Upper bound of the bytes between snapshots, for any size of the state. */
  readonly snapshotBytesMax: number;
  /** Bytes that complete a piece of a snapshot. */
  readonly snapshotPieceBytes: number;
  /** Entries kept behind a snapshot for followers that are a little slow. */
  readonly keepEntries: number;
  /** Bytes of those entries: fewer are kept beyond it. */
  readonly keepBytes: number;
  /** Watches per stream. */
  readonly watchesPerStreamMax: number;
  /** Unsent responses of one stream; beyond that its watches read from history, later. */
  readonly watchResponsesMax: number;
  /** Changes that one watch reads from history at a time. */
  readonly watchBatch: number;
  /** Bytes of one response of a watch with fragments. */
  readonly fragmentBytesMax: number;
  /**
   * Bytes of one revision for a watch without fragments: a watch with more in one revision is cancelled.
   */
  readonly revisionBytesMax: number;
  /** Bytes of unsent responses of all streams, in fair shares of the free part. */
  readonly watchBytesTotalMax: number;
  /** Interval of progress notifications to a quiet watch that asked for them, ms. */
  readonly progressNotifyMs: number;
  /** Memory of watches of all clients, in fair shares of the free part. */
  readonly watchesBytesMax: number;
  /** Lifetime of a token after its last use, ms. */
  readonly tokenTtlMs: number;
  /** Valid tokens; beyond that the least recently used is dropped. */
  readonly tokensMax: number;
  /** Memory of users, roles and permissions: beyond it commands that add some are refused. */
  readonly authBytesMax: number;
}

export const defaultLimits: ReplicaLimits = {
  // Each is a waiting client. More would only time out.
  requestsMax: 16_384,
  // The log accepts as much uncommitted, and would refuse more anyway.
  requestBytesTotalMax: 64 * 1024 * 1024,
  // etcd's bound; clients know it.
  operationsMax,
  requestBytesMax: 1.5 * 1024 * 1024,
  // All keys of most cores; some five such answers may be in memory at once.
  answerBytesMax: 256 * 1024 * 1024,
  // The clients of each of four other servers may ask as much.
  asksMax: 65_536,
  // A round takes a network round trip. With a few in flight no request waits for two of them, at any rate
  // of requests.
  roundsMax: 4,
  // One or two milliseconds for all kinds together, so that heartbeats are sent in between.
  unitsPerTurn: 1_024,
  // Applying these ends takes some milliseconds: expiries of a million leases must not stop the leader
  // (etcd 9360).
  leasesPerBatch: 1_000,
  // etcd's figure: replaying these takes about a second.
  snapshotEntries: 100_000,
  // The log's tail is in memory, and must not exceed a small state.
  snapshotBytes: 32 * 1024 * 1024,
  snapshotBytesMax: 256 * 1024 * 1024,
  snapshotPieceBytes: pieceBytesDefault,
  // etcd's figure.
  keepEntries: 5_000,
  // Followers further behind than some tenths of a second of a fast network get a snapshot, which is not
  // much more then.
  keepBytes: 32 * 1024 * 1024,
  // A thousand times what clients use.
  watchesPerStreamMax: 10_000,
  // Some milliseconds of a fast connection; history keeps the rest.
  watchResponsesMax: 256,
  // As etcd's batch of unsynced watchers: some milliseconds of work.
  watchBatch: 512,
  // Below every client's default of 4 MiB per message.
  fragmentBytesMax: 2 * 1024 * 1024,
  // A hundred thousand keys of a lease; some such revisions may be in memory at once.
  revisionBytesMax: 32 * 1024 * 1024,
  // The connections of a thousand clients carry this in about a second.
  watchBytesTotalMax: 256 * 1024 * 1024,
  // etcd's ten minutes.
  progressNotifyMs: 600_000,
  // Some hundred thousand watches per server, half of them on one connection.
  watchesBytesMax: 128 * 1024 * 1024,
  // etcd's figure.
  tokenTtlMs: 300_000,
  // More passwords than all servers together can check in that time.
  tokensMax: 32_768,
  // Some hundred thousand of them: some commands visit all, and a snapshot lists them, in one turn.
  authBytesMax: 32 * 1024 * 1024,
};
