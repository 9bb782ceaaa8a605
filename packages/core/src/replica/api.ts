import type { BothClocks } from "leasehold/common";
import type { Status } from "../raft/api.js";
import type { MemberId } from "../raft/types.js";
import type { Effects, Input } from "./types.js";

/**
 * The logic of one server of the core, as its host sees it; implemented by `Replica`.
 *
 * The host's loop: pass in each event with `step`, then call `take()` until it returns `undefined`, and carry
 * out each `Effects`. Several inputs before one `take()` make one batch. `now` must be read after the input
 * arrived. A leader uses the steady clock for leases; a reading older than the previous one counts as the
 * previous one. The wall clock shows how long the steady clock was stopped.
 */
export interface ServerLogic {
  /** @throws LeaseholdError `LOG_CORRUPT`: the server must stop, and must never continue with this log */
  step(input: Input, now: BothClocks): void;
  /** The next work for the host; `undefined` if there is none. All work is returned once. */
  take(): Effects | undefined;
  status(): ReplicaStatus;
  /** Returns the token's user, if the token is valid. */
  userOf(token: string): string | undefined;
}

/** For operators, metrics and the Maintenance service. */
export interface ReplicaStatus extends Status {
  /** 0 until the log has the cluster's id. */
  readonly cluster: bigint;
  /** The cluster's version. */
  readonly version: number;
  readonly revision: number;
  /** Whether this process has applied everything that was committed when it asked a leader. */
  readonly hasCaughtUp: boolean;
  readonly compacted: number;
  readonly keys: number;
  /** Puts applied since this process began. */
  readonly puts: number;
  readonly deletions: number;
  readonly leases: number;
  /** Approximate memory of the state. */
  readonly bytes: number;
  /** Members whose space alarm is raised. */
  readonly spaceAlarms: readonly MemberId[];
  /** Members whose content differs from the others'; 0 if it is unclear whose is wrong. */
  readonly corruptAlarms: readonly MemberId[];
  /** Pending requests. */
  readonly requests: number;
  /** Commands, reads and refreshes that no leader answered, since this process began. */
  readonly proposalsFailed: number;
  readonly asksFailed: number;
  /** Commands that took longer than 100 ms to apply. */
  readonly slowApplies: number;
  readonly watches: number;
  /** Watches that read from history because they are new or slow. */
  readonly watchesBehind: number;
}
