import type { BothClocks } from "leasehold/common";
import type { Status } from "../raft/api.js";
import type { MemberId } from "../raft/types.js";
import type { Effects, Input } from "./types.js";

/**
 * The logic of one server of the core, as its host sees it; implemented by `Replica`.
 *
 * The host's loop: pass in each event with `step`, then call `take()` until it returns `undefined`, and
 * execute each `Effects`. Several inputs before one `take()` make one batch. `now` must be read after the
 * input arrived. A leader judges leases by the steady clock; a reading older than the one before counts as
 * that one. The wall clock shows for how long the steady one stood still.
 */
export interface ServerLogic {
  /** @throws LeaseholdError `LOG_CORRUPT`: the server must stop, and never continue with this log */
  step(input: Input, now: BothClocks): void;
  /** The next work for the host; `undefined` if there is none. Everything is returned once. */
  take(): Effects | undefined;
  status(): ReplicaStatus;
  /** The user whose token this is, if it is valid. */
  userOf(token: string): string | undefined;
}

/** For operators, metrics and the Maintenance service. */
export interface ReplicaStatus extends Status {
  /** 0 until the cluster has begun. */
  readonly cluster: bigint;
  /** The version that the cluster speaks. */
  readonly version: number;
  readonly revision: number;
  /** This process has had everything that was committed when it asked a leader. */
  readonly hasCaughtUp: boolean;
  readonly compacted: number;
  readonly keys: number;
  /** Applied since this process began. */
  readonly puts: number;
  readonly deletions: number;
  readonly leases: number;
  /** Approximate memory of the state. */
  readonly bytes: number;
  /** Members whose space alarm is raised. */
  readonly spaceAlarms: readonly MemberId[];
  /** Members whose content differs from the others'; 0 if it is unclear which. */
  readonly corruptAlarms: readonly MemberId[];
  /** Pending requests. */
  readonly requests: number;
  /** Commands, reads and refreshes that got no answer from a leader, since this process began. */
  readonly proposalsFailed: number;
  readonly asksFailed: number;
  /** Commands that took longer than 100 ms to apply. */
  readonly slowApplies: number;
  readonly watches: number;
  /** Watches that read from history, as they are new or slow. */
  readonly watchesBehind: number;
}
