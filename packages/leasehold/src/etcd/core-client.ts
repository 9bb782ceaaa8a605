import type { Clock } from "../common/ports.js";
import { timeLeft } from "../common/time-left.js";
import type { Cancellation, Watching } from "../lease/provider.js";

/** A key and its value in the core. */
export interface Entry {
  readonly key: string;
  readonly value: string;
  /** The revision at which the key was created: the token of the tenure that created it (`tokenOf`). */
  readonly createRevision: bigint;
  /** The revision of its last change. */
  readonly modRevision: bigint;
  /** The core's lease that the key is attached to; 0 for none. */
  readonly leaseId: bigint;
}

/** The state of the core that every answer carries. */
export interface Moment {
  readonly revision: bigint;
  /** The term of the server that answered. */
  readonly term: bigint;
}

export interface Found extends Moment {
  readonly entry: Entry | undefined;
}

export interface Listed extends Moment {
  readonly entries: readonly Entry[];
}

/** The remaining time of a lease of the core; 0 if the lease does not exist. */
export interface Granted extends Moment {
  readonly seconds: number;
}

/** The time limit of an operation over all servers and repetitions, and its cancellation. */
export interface CallLimits {
  readonly timeoutMs: number;
  readonly cancellation?: Cancellation | undefined;
}

/** Shares one time limit among consecutive operations. */
export function sharedLimits(limits: CallLimits, clock: Clock): CallLimits {
  const leftMs = timeLeft(() => clock.monotonicMs(), limits.timeoutMs);
  return {
    ...limits,
    get timeoutMs() {
      return leftMs();
    },
  };
}

/** Receives the changes of watched keys, each once and in the order of revisions. */
export interface WatchListener {
  written(entry: Entry): void;
  /** Called with the revision of the deletion. */
  deleted(key: string, revision: bigint): void;
  /** Changes may have been missed: the caller has to read again. The watch continues from this revision. */
  missed(revision: bigint): void;
}

/**
 * The operations of a consistent core that leases use. Within its limits, every operation tries the next
 * server when one does not answer. So an operation may be carried out more than once: all of them are safe to
 * repeat.
 *
 * All of them reject with a `LeaseholdError`: `UNREACHABLE` or `NO_QUORUM` if no server answers, and the
 * core's reason if the core refuses.
 */
export interface CoreClient {
  /** Linearizable. */
  read(key: string, limits: CallLimits): Promise<Found>;
  /** All keys with this prefix, in order. Linearizable. */
  list(prefix: string, limits: CallLimits): Promise<Listed>;
  /** Creates the key if it does not exist. Returns the current entry, perhaps another client's. */
  create(
    key: string,
    value: string,
    leaseId: bigint,
    limits: CallLimits,
  ): Promise<Moment & { readonly entry: Entry }>;
  /**
   * Changes the value if the key is exactly `seen`. Returns the current entry. The key keeps its lease, or is
   * attached to `leaseId`.
   */
  replace(seen: Entry, value: string, limits: CallLimits, leaseId?: bigint): Promise<Found>;
  /** Grants a lease with an id of the caller's choice, for at least `seconds`; returns the granted time. */
  grantLease(leaseId: bigint, seconds: number, limits: CallLimits): Promise<Granted>;
  /** Revokes the lease and deletes its keys. Succeeds if the lease does not exist. */
  revokeLease(leaseId: bigint, limits: CallLimits): Promise<void>;
  /**
   * Refreshes the lease; 0 seconds if it does not exist. The term in the answer is from before the refresh.
   */
  refreshLease(leaseId: bigint, limits: CallLimits): Promise<Granted>;
  /** Whole seconds, rounded down, until the lease expires; negative if it does not exist. */
  leaseLife(leaseId: bigint, limits: CallLimits): Promise<{ readonly seconds: number }>;
  /**
   * Watches one key, or with `isPrefix` all keys with this prefix, from this revision on. Never calls back
   * during this call.
   */
  watch(
    place: { readonly key: string; readonly isPrefix: boolean },
    fromRevision: bigint,
    listener: WatchListener,
  ): Watching;
  close(): void;
}

/** A lease that has a name. */
export interface FoundLease {
  readonly id: bigint;
  /** The granted TTL. */
  readonly seconds: number;
}

/** The operations of a Leasehold core that named leases use. */
export interface NamedLeaseClient extends Pick<CoreClient, "refreshLease" | "revokeLease" | "close"> {
  /** Registers a lease under a name. Returns the lease that now has the name, perhaps another client's. */
  registerLease(name: string, id: bigint, seconds: number, limits: CallLimits): Promise<FoundLease>;
  findLease(name: string, limits: CallLimits): Promise<FoundLease | undefined>;
}
