import { fromBinary } from "@bufbuild/protobuf";
import { type Command, CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { Recovered } from "@leasehold/core/inner/raft/api.js";
import type { Entry } from "@leasehold/core/inner/raft/types.js";
import type { Version } from "@leasehold/core/inner/state/revisions.js";
import { type Applied, CoreState } from "@leasehold/core/inner/state/state.js";
import { finish } from "@leasehold/core/inner/state/steps.js";
import type { SimServer } from "./server.js";
import type { CoreReport } from "./invariants.js";
import { append } from "leasehold/inner/common/lists.js";

/** Receives each command of the log once, in order, as soon as the first server has applied it. */
export interface ReferenceObserver {
  applied(applied: Applied, command: Command, index: number): void;
  /** A new core has replaced the former one, and begins with this state. */
  replaced?(state: CoreState): void;
}

/** The initial state of a core. */
export interface Beginning {
  readonly index: number;
  readonly term: number;
  /** Creates its state, a new object each time. */
  readonly begin: () => CoreState;
  /** The number of changes in its history, and of compacted ones. */
  readonly changes: readonly Version[];
}

const nothing: Beginning = { index: 1, term: 1, begin: () => new CoreState(), changes: [] };

/**
 * The state of the cluster as a whole, built from the commands that servers have applied. Every server is
 * compared with it: at the same index all have the same state, and none has applied entries that are not on
 * its own disk.
 */
export class Reference {
  readonly state: CoreState;
  readonly changes: Version[];
  readonly #beginning: Beginning;
  /** The applied entries, in order. */
  readonly #entries: Entry[] = [];
  readonly #observers: ReferenceObserver[] = [];
  readonly #report: CoreReport;
  /** By index: the expected digest of a server that has applied it. */
  readonly #marks = new Map<number, string>();
  readonly #terms = new Map<number, number>();
  /** The index up to which each server's present life was checked. */
  readonly #seen = new Map<string, number>();
  #index: number;
  #term: number;

  constructor(report: CoreReport, beginning = nothing) {
    this.#report = report;
    this.#beginning = beginning;
    this.state = beginning.begin();
    this.changes = [...beginning.changes];
    this.#index = beginning.index;
    this.#term = beginning.term;
    this.#mark();
  }

  /** Moves all observers to another core. */
  handOver(next: Reference): void {
    for (const observer of this.#observers) {
      next.attach(observer);
      observer.replaced?.(next.state);
    }
    this.#observers.length = 0;
  }

  attach(observer: ReferenceObserver): void {
    this.#observers.push(observer);
  }

  get index(): number {
    return this.#index;
  }

  /** The term of the newest committed entry. */
  get term(): number {
    return this.#term;
  }

  observe(server: SimServer): void {
    const { applied, keys, leases, revision } = server.replica!.status();
    const life = `${server.id}/${server.life}`;
    const from = this.#seen.get(life) ?? 0;
    if (applied > from) this.#takeFrom(server, from, applied);
    this.#seen.set(life, applied);
    // Some leases of one command have ended and others have not: the state matches neither digest.
    if (server.replica!.isApplying) return;
    const mark = markOf(revision, leases, keys);
    const expected = this.#marks.get(applied);
    if (applied > 0 && mark !== expected)
      this.#report("agreement", `${server.id} at ${applied} is ${mark}, and not ${expected}`);
  }

  #takeFrom(server: SimServer, from: number, applied: number): void {
    const after = Math.max(from, server.disk.installingIndex);
    for (const entry of server.disk.recovered.entries)
      if (entry.index > after && entry.index <= applied) this.#take(server, entry);
    if (this.#index < applied)
      this.#report(
        "durability",
        `${server.id} has applied ${applied}, and has on disk up to ${this.#index} only`,
      );
  }

  #take(server: SimServer, entry: Entry): void {
    const term = this.#terms.get(entry.index);
    if (term !== undefined && term !== entry.term)
      this.#report(
        "agreement",
        `${server.id} has applied ${entry.index} of term ${entry.term}, and others of term ${term}`,
      );
    if (entry.index !== this.#index + 1) return;
    this.#index = entry.index;
    this.#term = entry.term;
    this.#terms.set(entry.index, entry.term);
    this.#entries.push(entry);
    if (entry.data.length > 0) {
      const command = fromBinary(CommandSchema, entry.data);
      const applied = this.state.apply(command, entry.term, entry.index);
      finish(this.state.revisions.sweep());
      append(this.changes, applied.changes);
      for (const observer of this.#observers) observer.applied(applied, command, entry.index);
    }
    this.#mark();
  }

  #mark(): void {
    const { leases, revisions } = this.state;
    this.#marks.set(this.#index, markOf(revisions.current, leases.size, revisions.live));
  }

  // For another core that takes over from this one

  /** The state of a server that has applied everything from the first entry up to that one. */
  stateAt(index: number): CoreState {
    const state = this.#beginning.begin();
    for (const entry of this.#entries) if (entry.index <= index) this.replay(state, entry);
    return state;
  }

  /** @returns the changes */
  replay(state: CoreState, { data, index, term }: Entry): readonly Version[] {
    if (data.length === 0) return [];
    const { changes } = state.apply(fromBinary(CommandSchema, data), term, index);
    finish(state.revisions.sweep());
    return changes;
  }

  /** The index up to which a server's log equals the applied one. */
  agreedIndex({ entries, snapshot }: Recovered): number {
    let { index } = snapshot;
    for (const entry of entries)
      if (entry.index === index + 1 && this.#terms.get(entry.index) === entry.term) index = entry.index;
    return index;
  }
}

function markOf(revision: number, leases: number, keys: number): string {
  return `at revision ${revision} with ${keys} keys and ${leases} leases`;
}
