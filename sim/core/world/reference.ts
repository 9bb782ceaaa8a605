import { fromBinary } from "@bufbuild/protobuf";
import { type Command, CommandSchema } from "../../../src/core/gen/leasehold/command_pb.js";
import type { Entry } from "../../../src/core/raft/types.js";
import type { Version } from "../../../src/core/state/revisions.js";
import { type Applied, CoreState } from "../../../src/core/state/state.js";
import { finish } from "../../../src/core/state/steps.js";
import type { SimServer } from "./server.js";
import type { CoreReport } from "./invariants.js";
import { append } from "../../../src/common/lists.js";

/** Hears of each command of the log once, in order, as soon as the first server has applied it. */
export interface ReferenceObserver {
  applied(applied: Applied, command: Command, index: number): void;
}

/**
 * What the cluster as a whole has come to: one state, made of what servers have applied. Every server is held
 * against it: at the same place in the log all are in the same state, and none has applied what is not on its
 * own disk.
 */
export class Reference {
  readonly state = new CoreState();
  readonly changes: Version[] = [];
  readonly #observers: ReferenceObserver[] = [];
  readonly #report: CoreReport;
  /** By index: what a server has to look like that has applied it. */
  readonly #marks = new Map<number, string>();
  readonly #terms = new Map<number, number>();
  /** Up to where each server, in its present life, was looked at. */
  readonly #seen = new Map<string, number>();
  #index = 1;
  #term = 1;

  constructor(report: CoreReport) {
    this.#report = report;
    this.#marks.set(1, markOf(this.state.revisions.current, this.state.leases.size, 0));
  }

  attach(observer: ReferenceObserver): void {
    this.#observers.push(observer);
  }

  get index(): number {
    return this.#index;
  }

  /** Of the newest entry that is committed. */
  get term(): number {
    return this.#term;
  }

  observe(server: SimServer): void {
    const { applied, keys, leases, revision } = server.replica!.status();
    const life = `${server.id}/${server.life}`;
    const from = this.#seen.get(life) ?? 0;
    if (applied > from) this.#takeFrom(server, from, applied);
    this.#seen.set(life, applied);
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
    if (entry.data.length > 0) {
      const command = fromBinary(CommandSchema, entry.data);
      const applied = this.state.apply(command, entry.term);
      finish(this.state.revisions.sweep());
      append(this.changes, applied.changes);
      for (const observer of this.#observers) observer.applied(applied, command, entry.index);
    }
    const { leases, revisions } = this.state;
    this.#marks.set(entry.index, markOf(revisions.current, leases.size, revisions.live));
  }
}

function markOf(revision: number, leases: number, keys: number): string {
  return `at revision ${revision} with ${keys} keys and ${leases} leases`;
}
