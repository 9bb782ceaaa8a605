import type { Clock } from "../common/ports.js";
import { timeLeft } from "../common/time-left.js";
import type { Cancellation, Watching } from "../lease/provider.js";

/** One key as the core has it. */
export interface Entry {
  readonly key: string;
  readonly value: string;
  /** The revision at which the key came into being: the token of the tenure that made it (`tokenOf`). */
  readonly createRevision: bigint;
  /** The revision of its last change. */
  readonly modRevision: bigint;
  /** The core's lease that it hangs on; 0 for none. */
  readonly leaseId: bigint;
}

/** What every answer says of the core. */
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

/** How long a lease of the core lasts from now on; 0 when there is none. */
export interface Granted extends Moment {
  readonly seconds: number;
}

/** How long an operation may take in all, over all servers and repetitions, and who may end it sooner. */
export interface CallLimits {
  readonly timeoutMs: number;
  readonly cancellation?: Cancellation | undefined;
}

/** The same limits for several operations, one after the other, which share the time. */
export function sharedLimits(limits: CallLimits, clock: Clock): CallLimits {
  const leftMs = timeLeft(() => clock.monotonicMs(), limits.timeoutMs);
  return {
    ...limits,
    get timeoutMs() {
      return leftMs();
    },
  };
}

/** What is told of watched keys, each change once, in the order of the revisions. */
export interface WatchListener {
  written(entry: Entry): void;
  /** `revision`: at which the key was deleted. */
  deleted(key: string, revision: bigint): void;
  /**
   * Changes may have been missed: what is known has to be read anew. The watch goes on from this revision.
   */
  missed(revision: bigint): void;
}

/**
 * What leases need of a consistent core. Every operation goes on to the next server when one does not answer,
 * within its limits, and may therefore be carried out more than once: all of them are safe to repeat.
 *
 * All of them reject with a `LeaseholdError` when no answer was reached: `UNREACHABLE`, `NO_QUORUM`, or what
 * the core refused them for.
 */
export interface CoreClient {
  /** Linearizable. */
  read(key: string, limits: CallLimits): Promise<Found>;
  /** All keys that begin so, in order. Linearizable. */
  list(prefix: string, limits: CallLimits): Promise<Listed>;
  /** Creates the key if there is none, and says what stands there then: perhaps another's. */
  create(
    key: string,
    value: string,
    leaseId: bigint,
    limits: CallLimits,
  ): Promise<Moment & { readonly entry: Entry }>;
  /**
   * Changes the value if the key is exactly as it was seen, and says what stands there then. The key keeps its
   * lease, or hangs on this one instead.
   */
  replace(seen: Entry, value: string, limits: CallLimits, leaseId?: bigint): Promise<Found>;
  /** Grants a lease with an id of the caller's choice, for at least so many seconds; says for how many. */
  grantLease(leaseId: bigint, seconds: number, limits: CallLimits): Promise<Granted>;
  /** Ends the lease and deletes what hangs on it. It is no error when there is none. */
  revokeLease(leaseId: bigint, limits: CallLimits): Promise<void>;
  /** Refreshes the lease; 0 seconds when there is none. The term is one from before the refresh. */
  refreshLease(leaseId: bigint, limits: CallLimits): Promise<Granted>;
  /** Whole seconds, rounded down, until the lease runs out; below 0 when there is none. */
  leaseLife(leaseId: bigint, limits: CallLimits): Promise<{ readonly seconds: number }>;
  /**
   * Watches one key, or with `isPrefix` all that begin so, from this revision on. Never calls back from
   * within this call.
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
  /** That it was granted for. */
  readonly seconds: number;
}

/** What named leases need of a core of ours. */
export interface NamedLeaseClient extends Pick<CoreClient, "refreshLease" | "revokeLease" | "close"> {
  /** The lease that has the name now: perhaps another's. */
  registerLease(name: string, id: bigint, seconds: number, limits: CallLimits): Promise<FoundLease>;
  findLease(name: string, limits: CallLimits): Promise<FoundLease | undefined>;
}
