import type { BothClocks } from "leasehold/common";
import type { Status } from "../raft/api.js";
import type { MemberId } from "../raft/types.js";
import type { Effects, Input } from "./types.js";

/**
 * The logic of one server of the core, as its host sees it. `Replica` is the implementation.
 *
 * The host's loop: hand in whatever has happened with `step`, then call `take()` until it answers
 * `undefined`, and do what each `Effects` says. Several inputs before one `take()` make one batch. `now` was
 * read after the input had come. The steady clock is what a leader judges leases by; a reading that is older
 * than the one before counts as that one. The other one shows for how long the steady one stood still.
 */
export interface ServerLogic {
  /** @throws LeaseholdError `LOG_CORRUPT`: the server must stop, and not go on with this log */
  step(input: Input, now: BothClocks): void;
  /** What there is to do; `undefined` if nothing. Each thing is handed out once. */
  take(): Effects | undefined;
  status(): ReplicaStatus;
}

/** For people, metrics and the Maintenance service. */
export interface ReplicaStatus extends Status {
  /** 0 until the cluster has begun. */
  readonly cluster: bigint;
  /** Of the cluster. */
  readonly version: number;
  readonly revision: number;
  /** Since this process began it has had everything that was committed when it asked a leader. */
  readonly hasCaughtUp: boolean;
  readonly compacted: number;
  readonly keys: number;
  /** Carried out since this process began. */
  readonly puts: number;
  readonly deletions: number;
  readonly leases: number;
  /** What the state takes in memory, about. */
  readonly bytes: number;
  /** Members whose space alarm is raised. */
  readonly spaceAlarms: readonly MemberId[];
  /** Members that have another content than the others; 0 if it cannot be told which. */
  readonly corruptAlarms: readonly MemberId[];
  /** Requests that are not answered yet. */
  readonly requests: number;
  /** Since this process began: commands, and reads and refreshes, that got no answer from a leader. */
  readonly proposalsFailed: number;
  readonly asksFailed: number;
  /** Commands that took longer than 100 ms to apply. */
  readonly slowApplies: number;
  readonly watches: number;
  /** Those of them that read from history, as they are new or slow. */
  readonly watchesBehind: number;
}
