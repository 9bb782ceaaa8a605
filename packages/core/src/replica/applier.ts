import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { Entry } from "../raft/types.js";
import type { Applied } from "../state/state.js";
import type { Steps } from "../state/steps.js";
import type { Context } from "./context.js";
import { readCommand } from "./proposals/read-command.js";

/** Units that each entry costs in addition to the keys it visits. */
const unitsPerEntry = 8;

/** Entries that take longer count as slow; etcd's threshold. */
const slowMs = 100;

export interface AppliedEntry {
  readonly entry: Entry;
  /** Absent if the entry has no command. */
  readonly command: Command | undefined;
  readonly applied: Applied | undefined;
}

interface Applying {
  readonly entry: Entry;
  readonly steps: Steps<AppliedEntry>;
  readonly begunMs: number;
}

export interface ApplierListener {
  /** Whether a client of this server waits for the command's answer. */
  isAwaited(command: Command): boolean;
  /** An entry of this term is about to be applied. */
  reached(term: number): void;
  applied(entry: AppliedEntry): void;
}

/**
 * Applies committed entries one by one, a bounded part per turn: a command that changes a million keys takes
 * many turns. Readers see no changes of a command before its last step.
 */
export class Applier {
  readonly #context: Context;
  readonly #listener: ApplierListener;
  #entries: readonly Entry[] = [];
  #next = 0;
  #applying: Applying | undefined;
  #slow = 0;
  #sweeping: Steps<void> | undefined;

  constructor(context: Context, listener: ApplierListener) {
    this.#context = context;
    this.#listener = listener;
  }

  /** Number of slow entries, by a clock that advances with the host's inputs. */
  get slow(): number {
    return this.#slow;
  }

  /** False between two commands. */
  get isApplying(): boolean {
    return this.#context.state.isApplying;
  }

  get isBusy(): boolean {
    const { hasGarbage } = this.#context.state.revisions;
    return this.isApplying || this.#next < this.#entries.length || hasGarbage;
  }

  add(entries: readonly Entry[]): void {
    if (entries.length === 0) return;
    this.#entries = [...this.#entries.slice(this.#next), ...entries];
    this.#next = 0;
  }

  /** The state is about to be replaced by one that includes all pending entries. */
  replaced(): void {
    this.#entries = [];
    this.#next = 0;
    this.#applying = undefined;
    this.#sweeping = undefined;
  }

  turn(): void {
    const { appliedIndex, limits, raft, state } = this.#context;
    const { visits } = state.revisions;
    const end = visits.count + limits.unitsPerTurn;
    for (let units = 0; visits.count + units < end; units += unitsPerEntry) if (!this.#step()) break;
    if (this.#context.appliedIndex > appliedIndex) raft.applied(this.#context.appliedIndex);
    // Garbage is swept between two commands only: both iterate over the same keys.
    const isOver = () => visits.count >= end;
    while (!this.isApplying && !isOver() && this.#context.state.revisions.hasGarbage) this.#sweep();
  }

  /** Returns false if there is nothing to do. */
  #step(): boolean {
    this.#applying ??= this.#begin();
    if (this.#applying === undefined) return false;
    const { begunMs, entry, steps } = this.#applying;
    const step = steps.next();
    if (step.done !== true) return true;
    this.#applying = undefined;
    if (this.#context.nowMs - begunMs > slowMs) this.#slow += 1;
    this.#context.appliedIndex = entry.index;
    this.#listener.applied(step.value);
    return true;
  }

  #begin(): Applying | undefined {
    const entry = this.#entries[this.#next];
    if (entry === undefined) return undefined;
    this.#next += 1;
    this.#listener.reached(entry.term);
    return { entry, steps: this.#apply(entry), begunMs: this.#context.nowMs };
  }

  *#apply(entry: Entry): Steps<AppliedEntry> {
    if (entry.data.length === 0) return { entry, command: undefined, applied: undefined };
    const command = readCommand(entry.index, entry.data);
    const { limits, state } = this.#context;
    const answerBytes = this.#listener.isAwaited(command) ? limits.answerBytesMax : -1;
    return { entry, command, applied: yield* state.applying(command, entry.term, entry.index, answerBytes) };
  }

  #sweep(): void {
    this.#sweeping ??= this.#context.state.revisions.sweep();
    if (this.#sweeping.next().done === true) this.#sweeping = undefined;
  }
}
