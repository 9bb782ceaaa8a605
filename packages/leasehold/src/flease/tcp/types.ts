import type { Duration, Leases } from "../../lease/types.js";
import type { Logger } from "../../runtime/logger.js";
import type { ParticipantOptions } from "../../runtime/options.js";
import type { SecurityOptions } from "../../runtime/security/options.js";

/** Options of a client of members: `flease://…`. */
export interface FleaseOptions extends ParticipantOptions, SecurityOptions {
  /** Name of the cluster. Default: as the first member that answers reports it. */
  cluster?: string | undefined;
  /**
   * An observer reads leases and the members' status, and cannot acquire. Default: a client, if the
   * credentials allow that.
   */
  role?: "client" | "observer" | undefined;
  /**
   * Renews leases in a worker thread, which runs the whole client, so that they outlast a busy event loop
   * (`docs/embedding.md`). `remaining()` and `assertHeld()` stay as right as without. A duration says how
   * long this thread may be busy before it counts as hung and its leases run out; `true` means `"5m"`.
   * Default false.
   */
  renewInWorker?: boolean | Duration | undefined;
}

export interface MemberOptions extends SecurityOptions {
  /** This member's name in `members`: 1 to 64 characters of `A-Z a-z 0-9 _ -`. */
  id: string;
  /** All members, 1 to 300, this one among them: id to `host:port`. The ids are the same on every member. */
  members: Record<string, string>;
  /** As in {@link FleaseOptions}, for the leases that this process takes. */
  label?: string | undefined;
  /** Address to listen on, `host:port`. Default: this member's entry in `members`. */
  listen?: string | undefined;
  /** Name of the cluster, up to 128 bytes, the same on every member. Default `"leasehold"`. */
  cluster?: string | undefined;
  /**
   * How many members coordinate one resource, 1 to all, the same on every member. Default: all of them up to
   * 5, else 5; an odd number is best. Smaller cells spread the load over many members; a resource stops when
   * its cell loses a majority.
   */
  cellSize?: number | undefined;
  /**
   * t_max, the longest lease of the cluster, the same on every member. More than 4 · `rpcTimeout` + 2 ·
   * `maxClockSkew`; at least ten times `maxClockSkew` is advised. Default `"15s"`.
   */
  ttlMax?: Duration | undefined;
  /**
   * ε, how far the wall clocks of any two participants may be apart, the same on every member. At least 2 ms.
   * Default `"500ms"`. `docs/settings.md` says how to choose it.
   */
  maxClockSkew?: Duration | undefined;
  /**
   * ρ, how much faster or slower than real time a steady clock may run, as a fraction from 0 to below 0.5,
   * the same on every member. Default 0.1: Linux lets no time service slew a clock by more
   * (`docs/settings.md`).
   */
  clockRateError?: number | undefined;
  /**
   * How long one phase of an operation waits for a majority; more than 0. Default: ttlMax / 15, at least 50
   * ms, at most `"1s"`.
   */
  rpcTimeout?: Duration | undefined;
  /**
   * Upper bound of resources on this member, a whole number of 1 or more. A resource with a name longer
   * than 40 bytes counts as two to five. A million take 150 MB at most. The share of one client follows
   * from this number (`docs/operations.md`); beyond its share, `acquire` rejects with `RESOURCES_FULL`.
   * Default 1,000,000.
   */
  resourcesMax?: number | undefined;
  /**
   * The file in which this member stores the membership, so that members can change while the cluster runs
   * (`docs/operations.md`). Its folder must exist. With it, a member to be added starts with an `id` that
   * is not in `members`, which stays the list of founding members; then `listen` is required. Default:
   * none, and membership changes are refused.
   */
  viewsFile?: string | undefined;
  /**
   * The initial state of a member whose `viewsFile` does not exist yet; ignored later. `"new"`: the cluster
   * begins, with these `members`. Never use it after the file was lost. `"existing"`: the cluster runs, and
   * this member has no vote before it is added. Required at the first start of a member in `members`; any
   * other member is to be added.
   */
  initialClusterState?: "new" | "existing" | undefined;
  /**
   * Allows plain TCP, without `tls` or a key, beyond loopback: anyone who reaches the port can then take
   * part. Default false.
   */
  insecure?: boolean | undefined;
  logger?: Logger | undefined;
}

/** Another member as a member sees it. */
export interface PeerStatus {
  id: string;
  address: string;
  connected: boolean;
  /** Bytes that wait for its socket. Absent while it is not connected. */
  queuedBytes?: number;
  /** Smallest recent round trip, ms. Absent before the first. */
  roundTripMs?: number;
  /** The peer's wall clock minus ours, ms, with an error of at most `skewErrorMs`. */
  skewMs?: number;
  /** Error bound of `skewMs`, ms: at least half a round trip. */
  skewErrorMs?: number;
}

/** A member's report of itself. One of an earlier build lacks the fields that were added since. */
export interface MemberStatus {
  id: string;
  /** The actual address, `host:port`. */
  address: string;
  /** Name of the cluster. */
  cluster: string;
  /** Number of the membership. */
  view: number;
  /**
   * 32 hexadecimal digits, new at each start: a hash of the key by which this process proves its identity.
   */
  incarnation: string;
  /**
   * `recovering`: it has started and stays silent until every lease it may have forgotten is over, or it is
   * not connected with a majority of the members. `clock-fault`: its clock contradicts the others'. `twin`:
   * another process is the same member. `learner`: it is to be added, was removed, or has lost its views
   * file. Only `ready` has a vote.
   */
  state: "ready" | "recovering" | "learner" | "clock-fault" | "twin";
  /** A condition that the operator should act on, in one sentence (`docs/operations.md`). */
  notice?: string;
  /** Milliseconds until its vote counts; 0 when it does. */
  readyInMs: number;
  /** Number of resources that its acceptor keeps. */
  resources: number;
  /**
   * Number of waiters over all resources, as far as this member knows: one that waits for several counts
   * once for each.
   */
  waiters: number;
  /** The longest lease of the cluster, in milliseconds. */
  ttlMaxMs: number;
  /** ε, in milliseconds. */
  maxClockSkewMs: number;
  /** The other members, as this one sees them. */
  peers: PeerStatus[];
  /** Number of connected clients. */
  clients: number;
  /** Bytes that wait for their sockets, of all clients. */
  clientsQueuedBytes: number;
  /** Frames and messages dropped or refused, by cause. */
  counters: Record<string, number>;
  /** Processor time of its process since the start, in milliseconds. */
  cpuMs: number;
  /** Memory of its process, bytes. */
  rssBytes: number;
}

export interface ReadyOptions {
  /** Aborts the wait; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Upper bound of the wait. Default: none. */
  timeout?: Duration | undefined;
}

/** A member of the cluster in this process. */
export interface Member {
  readonly id: string;
  /** The actual address. */
  readonly address: string;
  /** Leases of this process through its own cluster. Usable at once, also while the member recovers. */
  readonly leases: Leases;
  /** Status of this member, and of the others as it sees them. */
  status(): MemberStatus;
  /**
   * Changes {@link MemberOptions.resourcesMax}: a whole number of 1 or more. What the member keeps stays,
   * even if it is more than that.
   *
   * @throws LeaseholdError `INVALID_CONFIG`
   *
   * @example
   * ```ts
   * member.setResourcesMax(2_000_000);
   * ```
   */
  setResourcesMax(max: number): void;
  /**
   * Resolves when the member's vote counts: when the recovery wait is over (`ttlMax` · 1.22 or `ttlMax` + 3 ·
   * `maxClockSkew` with the default `clockRateError`, the longer of them) and the member is connected with a
   * majority.
   *
   * @throws LeaseholdError `TIMEOUT` when that takes longer than `timeout`, `CLOSED` as soon as the member is
   * closed, `INVALID_DURATION`; the signal's reason when it aborts.
   *
   * @example
   * ```ts
   * await member.ready({ timeout: "1m" });
   * console.log(member.status().state); // "ready"
   * ```
   */
  ready(options?: ReadyOptions): Promise<void>;
  /** Releases the leases of this process, as {@link Leases.close}, and stops listening. Idempotent. */
  close(): Promise<void>;
}

/** Result of `clusterStatus` for one member. */
export type MemberReport =
  | { id: string; address: string; reachable: true; status: MemberStatus }
  | { id: string; address: string; reachable: false; reason: string };
