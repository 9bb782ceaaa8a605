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
  /** What a new cluster is called; the log's own answer counts once there is one. */
  readonly cluster: bigint;
  /** The log that was found on disk; `founding` or `joining` if nothing was. */
  readonly recovered: Recovered;
  /** Restored from `recovered.snapshot`; a new one if that has never been written. */
  readonly state: CoreState;
  readonly random: Random;
  /** By which servers are compared: the same at all. */
  readonly checksum: Checksum;
  /** How often the leader has the keys of all servers compared, ms. Default 0: never. */
  readonly corruptCheckMs?: number | undefined;
  /** How often `tick` is said, ms. etcd's heartbeat interval. */
  readonly tickMs: number;
  /** Ticks of the least election timeout. Default 10. */
  readonly electionTicks?: number;
  /**
   * For so long after it has heard a leader a server votes for no other one, by its steady clock, ms. Servers
   * may differ in it. Default: half of the least election timeout.
   */
  readonly holdMs?: number;
  /** ρ, by how much the servers' steady clocks may run faster or slower than real time. Default 0.1. */
  readonly clockRateError?: number;
  /**
   * How often what is left of leases is replicated, so that it survives a change of leader; ms. 0: never.
   * Default 5 minutes.
   */
  readonly clusterTimeMs?: number;
  /** What the leader does about old revisions. Default: they stay until a client compacts them. */
  readonly autoCompaction?: AutoCompaction | undefined;
  /** Bytes of the state beyond which nothing is taken that needs more; no bound by default. */
  readonly quotaBytes?: number | undefined;
  /** Who the members were when this server's data directory was made: until the state says it. */
  readonly founding?: readonly CoreMember[];
  /** Told to all. Default: nothing is. */
  readonly self?: SelfDescription;
  /** What this server speaks at most. */
  readonly newestVersion?: number | undefined;
  readonly limits?: Partial<ReplicaLimits>;
  readonly raftLimits?: Partial<RaftLimits>;
}

/** How much history is kept, at least. */
export type AutoCompaction =
  | { readonly mode: "revision"; readonly keepRevisions: number }
  | { readonly mode: "periodic"; readonly keepMs: number };

export const electionTicksDefault = 10;
/**
 * Of the least election timeout. A leader is heard every tenth of that; and a server that has started again
 * is free to vote before anybody would stand who has started with it.
 */
export const holdShare = 0.5;
/** As etcd's lease checkpoints. */
export const clusterTimeMsDefault = 300_000;

/** What bounds memory and work. */
export interface ReplicaLimits {
  /** Requests that are not answered. */
  readonly requestsMax: number;
  /** Commands of theirs, bytes. */
  readonly requestBytesTotalMax: number;
  /** Of one transaction, with those inside; more is `too many operations in txn request`. */
  readonly operationsMax: number;
  /** One command, bytes; more is `request is too large`. */
  readonly requestBytesMax: number;
  /** Keys and values in one answer, bytes as the state counts them; more is refused. */
  readonly answerBytesMax: number;
  /** Questions of other servers that wait for a round. */
  readonly asksMax: number;
  /** Rounds of heartbeats under way that confirm leadership. */
  readonly roundsMax: number;
  /**
   * What a server looks at in one turn, for each kind of work: entries that are applied, clients' reads,
   * watches in history, what was compacted away. Keys, versions, changes; the rest waits for the next turn.
   */
  readonly unitsPerTurn: number;
  /** Leases in one proposal that ends them, or that tells what is left of them. */
  readonly leasesPerBatch: number;
  /** Applied entries after which a snapshot is taken. */
  readonly snapshotEntries: number;
  /**
   * Bytes of applied entries after which a snapshot is taken, if the state has no more than that; else so
   * many as the state has: what is written for snapshots is then at most about twice what was written by
   * clients.
   */
  readonly snapshotBytes: number;
  /** Bytes of applied entries after which a snapshot is taken, whatever the state has. */
  readonly snapshotBytesMax: number;
  /** Bytes after which a piece of a snapshot is full. */
  readonly snapshotPieceBytes: number;
  /** Entries that are kept behind a snapshot for followers that are a little slow. */
  readonly keepEntries: number;
  /** Bytes of them: fewer are kept if they have more. */
  readonly keepBytes: number;
  /** Watches on one stream. */
  readonly watchesPerStreamMax: number;
  /**
   * Responses of one stream that have not been sent to the client; then its watches read from history, later.
   */
  readonly watchResponsesMax: number;
  /** Changes that one watch reads from history at a time. */
  readonly watchBatch: number;
  /** Bytes of one response of a watch that asked for fragments. */
  readonly fragmentBytesMax: number;
  /**
   * Bytes of one revision for a watch that did not: if it has more of the watch's keys, the watch is
   * cancelled.
   */
  readonly revisionBytesMax: number;
  /**
   * Bytes of responses that have not been sent to their clients, of all streams; each may have as much of it
   * as is free.
   */
  readonly watchBytesTotalMax: number;
  /** What watches may take in memory, of all clients; each may have as much of it as is free. */
  readonly watchesBytesMax: number;
  /** How long a token is good after it was used last, ms. */
  readonly tokenTtlMs: number;
  /** Tokens that are good; the one that has not been used for longest makes room for more. */
  readonly tokensMax: number;
  /** What users, roles and permissions may take in memory: commands that add some are refused then. */
  readonly authBytesMax: number;
}

export const defaultLimits: ReplicaLimits = {
  // Each is a waiting client. More at once would only wait longer than their deadlines.
  requestsMax: 16_384,
  // As much as the log takes uncommitted: what more is there is refused by it anyway.
  requestBytesTotalMax: 64 * 1024 * 1024,
  // etcd's bound; clients know it.
  operationsMax,
  requestBytesMax: 1.5 * 1024 * 1024,
  // All keys of most cores, and some five at once in memory.
  answerBytesMax: 256 * 1024 * 1024,
  // As many as a server's own clients may be, from each of four others.
  asksMax: 65_536,
  // One takes a network round trip. With a few under way nobody waits for two of them, however fast questions
  // come.
  roundsMax: 4,
  // One or two milliseconds, all kinds together: heartbeats have their turn in between.
  unitsPerTurn: 1_024,
  // Ending these takes some milliseconds to apply: expiries of a million leases must not stop the leader
  // (etcd 9360).
  leasesPerBatch: 1_000,
  // etcd's figures: replaying these takes about a second.
  snapshotEntries: 100_000,
  // The log's tail is in memory: of a small state it shall not be what takes the most.
  snapshotBytes: 32 * 1024 * 1024,
  snapshotBytesMax: 256 * 1024 * 1024,
  snapshotPieceBytes: pieceBytesDefault,
  // etcd's figure.
  keepEntries: 5_000,
  // Followers that are behind by more than some tenths of a second of a fast network get a snapshot, which is
  // not much more then.
  keepBytes: 32 * 1024 * 1024,
  // A thousand times what clients use.
  watchesPerStreamMax: 10_000,
  // Some milliseconds of a fast connection; history keeps the rest.
  watchResponsesMax: 256,
  // As etcd's batch of unsynced watchers: some milliseconds of work.
  watchBatch: 512,
  // Below every client's default of 4 MiB for one message.
  fragmentBytesMax: 2 * 1024 * 1024,
  // A hundred thousand keys of a lease, and some such at once in memory.
  revisionBytesMax: 32 * 1024 * 1024,
  // What the connections of a thousand clients take in a second or so.
  watchBytesTotalMax: 256 * 1024 * 1024,
  // Some hundred thousand watches of a server, half of them of one connection.
  watchesBytesMax: 128 * 1024 * 1024,
  // etcd's figure.
  tokenTtlMs: 300_000,
  // More than all servers together can look at passwords for in that time.
  tokensMax: 32_768,
  // Some hundred thousand of them: some commands look at all, and a snapshot lists them, in one turn.
  authBytesMax: 32 * 1024 * 1024,
};
