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
  /** Id for a new cluster. Once the log has an id, that one counts. */
  readonly cluster: bigint;
  /** The log found on disk; `founding` or `joining` for an empty disk. */
  readonly recovered: Recovered;
  /** The state restored from `recovered.snapshot`; a new one if there was never a snapshot. */
  readonly state: CoreState;
  readonly random: Random;
  /** Hashes content to compare servers; the same function on all servers. */
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
  /** The leader's automatic compaction of old revisions. Default: none; clients compact. */
  readonly autoCompaction?: AutoCompaction | undefined;
  /** Size of the state, bytes, beyond which commands that need space are refused. Default: no bound. */
  readonly quotaBytes?: number | undefined;
  /** The members when this server's data directory was created; used until the state lists them. */
  readonly founding?: readonly CoreMember[];
  /** This server's description, announced to all members. Default: none. */
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
 * As a fraction of the minimum election timeout. A leader is heard every tenth of that, and a restarted
 * server may vote again before another one that restarted with it stands.
 */
export const holdShare = 0.5;
/** The interval of etcd's lease checkpoints. */
export const clusterTimeMsDefault = 300_000;

/** Bounds of memory and work. */
export interface ReplicaLimits {
  /** Pending requests. */
  readonly requestsMax: number;
  /** Bytes of all their commands. */
  readonly requestBytesTotalMax: number;
  /** Operations per transaction, including nested ones; more is `too many operations in txn request`. */
  readonly operationsMax: number;
  /** Bytes of one command; more is `request is too large`. */
  readonly requestBytesMax: number;
  /** Bytes of keys and values in one answer, as the state counts them; more is refused. */
  readonly answerBytesMax: number;
  /** Requests from other servers that wait for a round. */
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
   * Bytes of applied entries between snapshots if the state is smaller. Otherwise the size of the state
   * counts, so snapshots write at most about twice as much as clients.
   */
  readonly snapshotBytes: number;
  /** Upper bound of the bytes between snapshots, for any size of the state. */
  readonly snapshotBytesMax: number;
  /** Bytes that complete a piece of a snapshot. */
  readonly snapshotPieceBytes: number;
  /** Entries kept after a snapshot for followers that are slightly behind. */
  readonly keepEntries: number;
  /** Bound of the bytes of those entries: fewer are kept beyond it. */
  readonly keepBytes: number;
  /** Watches per stream. */
  readonly watchesPerStreamMax: number;
  /** Unsent responses of one stream; beyond that, its watches read from history later. */
  readonly watchResponsesMax: number;
  /** Changes that one watch reads from history at a time. */
  readonly watchBatch: number;
  /** Bytes of one response of a watch with fragments. */
  readonly fragmentBytesMax: number;
  /** Bytes of one revision for a watch without fragments; a larger revision cancels the watch. */
  readonly revisionBytesMax: number;
  /** Bytes of unsent responses of all streams. Clients get fair shares of the free part. */
  readonly watchBytesTotalMax: number;
  /** Interval of progress notifications to a quiet watch that asked for them, ms. */
  readonly progressNotifyMs: number;
  /** Bytes of watches of all clients. Clients get fair shares of the free part. */
  readonly watchesBytesMax: number;
  /** Lifetime of a token after its last use, ms. */
  readonly tokenTtlMs: number;
  /** Valid tokens; beyond that, the least recently used one is dropped. */
  readonly tokensMax: number;
  /** Bytes of users, roles and permissions; commands that would exceed it are refused. */
  readonly authBytesMax: number;
}

export const defaultLimits: ReplicaLimits = {
  // Each request is a waiting client. Further ones would only time out.
  requestsMax: 16_384,
  // The log accepts as much uncommitted data, and would refuse more anyway.
  requestBytesTotalMax: 64 * 1024 * 1024,
  // etcd's bound, which clients know.
  operationsMax,
  requestBytesMax: 1.5 * 1024 * 1024,
  // All keys of most cores. About five such answers may be in memory at once.
  answerBytesMax: 256 * 1024 * 1024,
  // Enough for the clients of each of four other servers.
  asksMax: 65_536,
  // A round takes a network round trip. With a few rounds in flight, no request waits for two round trips, at
  // any rate of requests.
  roundsMax: 4,
  // All kinds together take one or two milliseconds, so that heartbeats are sent in between.
  unitsPerTurn: 1_024,
  // Applying these takes some milliseconds: the expiry of a million leases must not stop the leader (etcd
  // 9360).
  leasesPerBatch: 1_000,
  // etcd's value: replaying these entries takes about a second.
  snapshotEntries: 100_000,
  // The log's tail is in memory, and must not exceed a small state.
  snapshotBytes: 32 * 1024 * 1024,
  snapshotBytesMax: 256 * 1024 * 1024,
  snapshotPieceBytes: pieceBytesDefault,
  // etcd's value.
  keepEntries: 5_000,
  // Followers further behind than some tenths of a second on a fast network get a snapshot, which by then is
  // not much larger.
  keepBytes: 32 * 1024 * 1024,
  // A thousand times as many as clients use.
  watchesPerStreamMax: 10_000,
  // Some milliseconds on a fast connection; history keeps the rest.
  watchResponsesMax: 256,
  // etcd's batch of unsynced watchers: some milliseconds of work.
  watchBatch: 512,
  // Below every client's default of 4 MiB per message.
  fragmentBytesMax: 2 * 1024 * 1024,
  // A lease with a hundred thousand keys. Some such revisions may be in memory at once.
  revisionBytesMax: 32 * 1024 * 1024,
  // The connections of a thousand clients transfer this in about a second.
  watchBytesTotalMax: 256 * 1024 * 1024,
  // etcd's ten minutes.
  progressNotifyMs: 600_000,
  // Some hundred thousand watches per server, half of them on one connection.
  watchesBytesMax: 128 * 1024 * 1024,
  // etcd's value.
  tokenTtlMs: 300_000,
  // More than the passwords that all servers together can check in that time.
  tokensMax: 32_768,
  // Some hundred thousand entries: some commands visit all of them, and a snapshot lists them, in one turn.
  authBytesMax: 32 * 1024 * 1024,
};
