import { isMember } from "../raft/membership.js";
import type { CommandBody, Context } from "./context.js";
import type { AutoCompaction } from "./options.js";

/** Interval at which the leader checks how long the history is, ms. */
const lookMs = 1_000;

/** Minimum fraction of the history to compact at once, so that the command is worth an entry in the log. */
const shareAtOnce = 0.1;

/**
 * Fraction of the quota beyond which the older half of history is compacted, regardless of the time to keep.
 */
const pressureShare = 0.75;

interface Sample {
  readonly atMs: number;
  readonly revision: number;
}

/**
 * The leader's upkeep of the state's size. It compacts history that is older than the time to keep or crowds
 * out new data. If the state still exceeds the quota, it raises the alarm, and all servers refuse commands
 * that need space. Everything goes through the log, so that servers agree.
 */
export class SpaceKeeping {
  readonly #context: Context;
  readonly #compaction: AutoCompaction | undefined;
  readonly #quotaBytes: number;
  /** Index of its last command: the next one waits until that is applied. */
  #proposedIndex = 0;
  #nextLookMs = 0;
  /** The newest revision at times in the past, oldest first; they span the time to keep. */
  #samples: Sample[] = [];

  constructor(context: Context, compaction: AutoCompaction | undefined, quotaBytes: number) {
    this.#context = context;
    this.#compaction = compaction;
    this.#quotaBytes = quotaBytes;
  }

  /** This server leads. It does not know an earlier leader's samples, so at worst history is kept longer. */
  begin(): void {
    this.#proposedIndex = 0;
    this.#nextLookMs = 0;
    this.#samples = [];
  }

  tick(): void {
    const { appliedIndex, nowMs, state } = this.#context;
    // Compacted versions count until they have been removed.
    if (appliedIndex < this.#proposedIndex || state.revisions.hasGarbage) return;
    // A leader whose removal is being committed will not be a member: nobody could disarm its alarm.
    const isStaying = isMember(this.#context.raft.membership, this.#context.id);
    if (isStaying && state.bytes > this.#quotaBytes && state.spaceAlarms.size === 0) {
      this.#propose({ case: "spaceAlarm", value: { member: this.#context.id, raised: true } });
      return;
    }
    // A compaction would be refused during a corrupt alarm.
    if (this.#compaction === undefined || state.corruptAlarms.size > 0) return;
    if (state.bytes > this.#quotaBytes * pressureShare) this.#compact(state.revisions.middle);
    else if (nowMs >= this.#nextLookMs) {
      this.#nextLookMs = nowMs + lookMs;
      this.#compact(this.#dueRevision(this.#compaction));
    }
  }

  /** The revision up to which to compact; 0 if too little would be compacted. */
  #dueRevision(compaction: AutoCompaction): number {
    const { compacted, current } = this.#context.state.revisions;
    if (compaction.mode === "periodic") return this.#newestOlderThan(compaction.keepMs);
    const revision = current - compaction.keepRevisions;
    return revision - compacted >= compaction.keepRevisions * shareAtOnce ? revision : 0;
  }

  #newestOlderThan(keepMs: number): number {
    const { nowMs, state } = this.#context;
    const last = this.#samples.at(-1);
    if (last === undefined || nowMs - last.atMs >= keepMs * shareAtOnce)
      this.#samples.push({ atMs: nowMs, revision: state.revisions.current });
    const young = this.#samples.findIndex(({ atMs }) => nowMs - atMs < keepMs);
    const old = this.#samples.splice(0, young);
    return old.at(-1)?.revision ?? 0;
  }

  #compact(revision: number): void {
    if (revision <= Math.max(0, this.#context.state.revisions.compacted)) return;
    this.#propose({ case: "compact", value: { revision: BigInt(revision) } });
  }

  #propose(body: CommandBody): void {
    const proposed = this.#context.propose(body);
    // If refused, it is tried again at the next tick.
    if (proposed.accepted) this.#proposedIndex = proposed.index;
  }
}
