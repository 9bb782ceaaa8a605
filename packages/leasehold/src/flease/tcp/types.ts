import type { Duration, Leases } from "../../lease/types.js";
import type { Logger } from "../../runtime/logger.js";
import type { ParticipantOptions } from "../../runtime/options.js";
import type { SecurityOptions } from "../../runtime/security/options.js";

/** What a client of members understands: `flease://…`. */
export interface FleaseOptions extends ParticipantOptions, SecurityOptions {
  /** Name of the cluster. Default: whatever the first member that answers says. */
  cluster?: string | undefined;
  /**
   * An observer asks who holds what and how the members are, and can take no lease. Default: a client, if the
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
   * How many resources this member keeps, a whole number of 1 or more. A resource whose name is longer than
   * 40 bytes counts as two to five. A million take 150 MB at most. The share of one client follows from
   * this number (`docs/operations.md`); beyond its share, `acquire` rejects with `RESOURCES_FULL`. Default
   * 1,000,000.
   */
  resourcesMax?: number | undefined;
  /**
   * The file in which this member keeps which members there are, so that they can change while the cluster
   * runs (`docs/operations.md`). Its folder must exist. With it, a member that is to be added starts with an
   * `id` that is not in `members`, which stay those that the cluster began with; then `listen` is required.
   * Default: none, and such changes are refused.
   */
  viewsFile?: string | undefined;
  /**
   * What a member with a `viewsFile` takes its cluster for as long as there is no such file, ignored later.
   * `"new"`: the cluster begins, with these `members`. Never say so when the file was lost. `"existing"`: the
   * cluster runs, and this member has no vote before it is added. Required at the first start of a member in
   * `members`; one that is not there is to be added.
   */
  initialClusterState?: "new" | "existing" | undefined;
  /**
   * Allows plain TCP, without `tls` or a key, beyond loopback: anybody who reaches the port can then take
   * part. Default false.
   */
  insecure?: boolean | undefined;
  logger?: Logger | undefined;
}

/** How a member sees another member. */
export interface PeerStatus {
  id: string;
  address: string;
  connected: boolean;
  /** Smallest recent round trip, ms. Absent before the first. */
  roundTripMs?: number;
  /** How far the peer's wall clock is ahead of ours, ms, give or take `skewErrorMs`. */
  skewMs?: number;
  /** The clocks are no further from `skewMs` apart than this, ms: at least half a round trip. */
  skewErrorMs?: number;
}

export interface MemberStatus {
  id: string;
  /** Where it really listens, `host:port`. */
  address: string;
  /** Name of the cluster. */
  cluster: string;
  /** Number of the membership. */
  view: number;
  /** 32 hexadecimal digits, new at each start: a hash of the key with which this process proves who it is. */
  incarnation: string;
  /**
   * `recovering`: it has started and is silent until every lease that it may have forgotten is over, or it is
   * not connected with a majority of the members. `clock-fault`: its clock contradicts those of the others.
   * `twin`: another process is the same member. `learner`: it is to be added, was removed, or has lost its
   * views file. All but `ready` have no vote.
   */
  state: "ready" | "recovering" | "learner" | "clock-fault" | "twin";
  /** What the operator should know and do something about, in one sentence (`docs/operations.md`). */
  notice?: string;
  /** Milliseconds until it takes part, 0 when it does. */
  readyInMs: number;
  /** Resources that its acceptor keeps. */
  resources: number;
  /**
   * Those who wait for a resource, over all resources, as far as this member knows: each counts once for each
   * resource.
   */
  waiters: number;
  /** The longest lease of the cluster, in milliseconds. */
  ttlMaxMs: number;
  /** ε, in milliseconds. */
  maxClockSkewMs: number;
  /** The other members, as this one sees them. */
  peers: PeerStatus[];
  /** Clients that are connected. */
  clients: number;
  /** Frames and messages dropped or refused, by cause. */
  counters: Record<string, number>;
  /** Processor time that its process has used since it was started, in milliseconds. */
  cpuMs: number;
  /** Memory of its process. */
  rssBytes: number;
}

export interface ReadyOptions {
  /** Ends the wait; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** How long to wait at most. Default: for ever. */
  timeout?: Duration | undefined;
}

/** A member of the cluster that lives in this process. */
export interface Member {
  readonly id: string;
  /** The address it really listens on. */
  readonly address: string;
  /**
   * This process's own leases, taken through its own cluster. Usable at once, also while the member recovers.
   */
  readonly leases: Leases;
  /** How this member is, and how it sees the others. */
  status(): MemberStatus;
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
  /** Gives back the leases of this process, as {@link Leases.close}, and stops listening. Idempotent. */
  close(): Promise<void>;
}

/** What `clusterStatus` found at one member. */
export type MemberReport =
  | { id: string; address: string; reachable: true; status: MemberStatus }
  | { id: string; address: string; reachable: false; reason: string };
