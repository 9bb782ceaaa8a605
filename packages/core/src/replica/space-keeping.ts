import { isMember } from "../raft/membership.js";
import type { CommandBody, Context } from "./context.js";
import type { AutoCompaction } from "./options.js";

/** How often the leader looks whether history has grown too long, ms. */
const lookMs = 1_000;

/**
 * Of the history that is to be kept: so much at once goes, so that a command that compacts is worth its place
 * in the log.
 */
const shareAtOnce = 0.1;

/** Of the quota: from here on the older half of history gives way, however long it was to be kept. */
const pressureShare = 0.75;

interface Sample {
  readonly atMs: number;
  readonly revision: number;
}

/**
 * The leader's care for the size of the state: it has history compacted that is older than it was to be kept,
 * or that stands in the way of what is new; and when what there is needs more than the quota all the same, it
 * raises the alarm, by which all servers refuse what needs more room. All of that is in the log: servers
 * agree on it.
 */
export class SpaceKeeping {
  readonly #context: Context;
  readonly #compaction: AutoCompaction | undefined;
  readonly #quotaBytes: number;
  /** Of the last command of its own: the next one waits until that is applied. */
  #proposedIndex = 0;
  #nextLookMs = 0;
  /** When which revision was the newest, oldest first: of as long as history is to be kept. */
  #samples: Sample[] = [];

  constructor(context: Context, compaction: AutoCompaction | undefined, quotaBytes: number) {
    this.#context = context;
    this.#compaction = compaction;
    this.#quotaBytes = quotaBytes;
  }

  /**
   * This server leads. What an earlier leader has seen is not known here: history stays for longer, at worst.
   */
  begin(): void {
    this.#proposedIndex = 0;
    this.#nextLookMs = 0;
    this.#samples = [];
  }

  tick(): void {
    const { appliedIndex, nowMs, state } = this.#context;
    // What was compacted away is counted until it has been removed.
    if (appliedIndex < this.#proposedIndex || state.revisions.hasGarbage) return;
    // One that leads until its own removal is committed is no member behind that: nothing would end its alarm.
    const isStaying = isMember(this.#context.raft.membership, this.#context.id);
    if (isStaying && state.bytes > this.#quotaBytes && state.spaceAlarms.size === 0) {
      this.#propose({ case: "spaceAlarm", value: { member: this.#context.id, raised: true } });
      return;
    }
    // While a server is corrupt nothing is compacted: it would be refused.
    if (this.#compaction === undefined || state.corruptAlarms.size > 0) return;
    if (state.bytes > this.#quotaBytes * pressureShare) this.#compact(state.revisions.middle);
    else if (nowMs >= this.#nextLookMs) {
      this.#nextLookMs = nowMs + lookMs;
      this.#compact(this.#dueRevision(this.#compaction));
    }
  }

  /** Up to which nothing needs to be kept; 0 if that is not worth a command. */
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
    // Else it is found again at the next tick.
    if (proposed.accepted) this.#proposedIndex = proposed.index;
  }
}
