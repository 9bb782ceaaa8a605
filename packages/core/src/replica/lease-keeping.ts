import type { Applied } from "../state/state.js";
import type { Context } from "./context.js";
import { LeaderTracker, type LeaseTracker, type TimeLeft, untracked } from "./lease-tracker.js";

/**
 * The leader's upkeep of leases: it finds expired ones and proposes their end, and periodically writes the
 * remaining times of the others. Nothing ends here: a lease and its keys are deleted when the proposal is
 * committed and applied.
 */
export class LeaseKeeping {
  readonly #context: Context;
  readonly #clusterTimeMs: number;
  tracker: LeaseTracker = untracked;
  /**
   * Index of the last proposal to end leases. The next one waits for it, so that these proposals cannot crowd
   * out other entries.
   */
  #endingIndex = 0;
  #ending: readonly bigint[] = [];
  #nextWriteMs = 0;
  #ledFromMs = 0;

  constructor(context: Context, clusterTimeMs: number) {
    this.#context = context;
    this.#clusterTimeMs = clusterTimeMs;
  }

  get isTracking(): boolean {
    return this.tracker !== untracked;
  }

  /**
   * This server leads, and has applied the first entry of its term: its state includes everything ever
   * acknowledged.
   */
  begin(): void {
    const { electionMs, nowMs, state } = this.#context;
    this.tracker = new LeaderTracker(state.leases, nowMs, electionMs);
    this.#endingIndex = 0;
    this.#ending = [];
    this.#ledFromMs = nowMs - state.clusterMs;
    this.#nextWriteMs = nowMs + this.#clusterTimeMs;
  }

  end(): void {
    this.tracker = untracked;
  }

  /** Continues work in progress, a bounded part of it. */
  turn(): void {
    const { limits, state } = this.#context;
    if (this.tracker.isBeginning) state.revisions.visits.count += this.tracker.goOn(limits.unitsPerTurn);
  }

  applied({ granted, ended }: Applied): void {
    const { nowMs, state } = this.#context;
    for (const id of ended) this.tracker.ended(id);
    for (const id of granted) this.tracker.granted(state.leases.get(id)!, nowMs);
  }

  tick(): void {
    if (!this.isTracking) return;
    this.#proposeEnds();
    if (this.#clusterTimeMs > 0) this.#writeTime();
  }

  #proposeEnds(): void {
    const { appliedIndex, leadership, limits, nowMs, state } = this.#context;
    if (appliedIndex < this.#endingIndex) return;
    // Leases still here were not ended, because an alarm was applied first.
    this.tracker.putBack(this.#ending, nowMs);
    this.#ending = [];
    if (state.corruptAlarms.size > 0) return;
    const ids = this.tracker.takeDue(nowMs, limits.leasesPerBatch);
    if (ids.length === 0) return;
    const value = { ids, term: BigInt(leadership.term), apart: true, seen: BigInt(appliedIndex) };
    const proposed = this.#context.propose({ case: "leaseExpire", value });
    // If it is refused, the leases must be put back: otherwise they would never be found again (etcd 10686).
    this.#ending = proposed.accepted ? ids : [];
    if (proposed.accepted) this.#endingIndex = proposed.index;
    else this.tracker.putBack(ids, nowMs);
  }

  /**
   * Writes remaining times to the log: the cluster's clock, which outlives its leaders (LogCabin's
   * ClusterTime; etcd's lease checkpoints, 9395).
   */
  #writeTime(): void {
    const { limits, nowMs } = this.#context;
    if (nowMs < this.#nextWriteMs) return;
    // A pass in progress continues at later ticks.
    const left = this.tracker.shorter(nowMs, this.#clusterTimeMs, limits.leasesPerBatch);
    if (left === undefined) this.#nextWriteMs = nowMs + this.#clusterTimeMs;
    if (left === undefined || left.length === 0) return;
    // If the proposal is refused, or lost with this leader, the log has longer times, which is the safe side.
    const index = this.#proposeTime(left);
    if (index !== undefined) this.tracker.wroteShort(left, index);
  }

  /**
   * Proposes the full time of these leases. A refresh is acknowledged only when the log has that, so that the
   * refresh outlives this leader. Returns the index of the proposal; undefined if it cannot be proposed now.
   */
  writeWhole(ids: readonly bigint[]): number | undefined {
    const { state } = this.#context;
    const left = ids.flatMap((id): TimeLeft[] => {
      const lease = state.leases.get(id);
      return lease === undefined ? [] : [{ id, leftMs: lease.ttlSeconds * 1_000 }];
    });
    return this.#proposeTime(left);
  }

  #proposeTime(left: readonly TimeLeft[]): number | undefined {
    const { appliedIndex, nowMs } = this.#context;
    const milliseconds = BigInt(Math.max(0, Math.floor(nowMs - this.#ledFromMs)));
    const value = {
      milliseconds,
      seen: BigInt(appliedIndex),
      left: left.map(({ id, leftMs }) => ({ id, milliseconds: BigInt(leftMs) })),
    };
    const proposed = this.#context.propose({ case: "clusterTime", value });
    return proposed.accepted ? proposed.index : undefined;
  }
}
