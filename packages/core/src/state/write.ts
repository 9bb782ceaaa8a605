import type { AnswerBudget } from "./long-range.js";
import type { Key, KeyRange } from "./keys.js";
import type { Leases } from "./leases.js";
import type { KeysView, Revisions, Version } from "./revisions.js";
import { type Steps, unitsPerStep } from "./steps.js";
import type { Value } from "./values.js";

/** The view of a transaction's operations: the state before it, with the changes of preceding operations. */
export interface Seen {
  readonly view: KeysView;
  readonly budget: AnswerBudget;
  /** The newest revision that they see. */
  readonly revision: number;
}

/** The changes of one write transaction. They share one revision; without changes there is none. */
export class Write implements Seen {
  readonly leases: Leases;
  readonly budget: AnswerBudget;
  readonly #revisions: Revisions;
  readonly #before: number;
  readonly #revision: number;
  /** Its changes so far, in order. */
  readonly changes: Version[] = [];

  /**
   * @param before the newest revision before this write, which may be an unpublished one of the same command
   */
  constructor(revisions: Revisions, leases: Leases, budget: AnswerBudget, before = revisions.current) {
    this.budget = budget;
    this.#revisions = revisions;
    this.leases = leases;
    this.#before = before;
    this.#revision = before + 1;
  }

  get view(): KeysView {
    return this.#revisions;
  }

  get revision(): number {
    return this.changes.length > 0 ? this.#revision : this.#before;
  }

  /**
   * The lease must exist.
   *
   * @param before the newest version of the key, if it exists
   */
  put(key: Key, value: Value, lease: bigint, before: Version | undefined): void {
    const id = this.leases.attach(key, lease, before?.lease ?? 0n);
    this.changes.push(this.#revisions.put(key, value, id, this.#revision, before));
  }

  /** Returns the deleted versions. */
  *delete(range: KeyRange): Steps<Version[]> {
    const gone: Version[] = [];
    const keys: Key[] = [];
    let looked = 0;
    for (const version of this.view.range(range, this.revision)) {
      looked += 1;
      if (looked % unitsPerStep === 0) yield;
      if (version === undefined) continue;
      gone.push(version);
      keys.push(version.key);
    }
    yield* this.#deleteAll(keys);
    this.#revisions.deletions += 1;
    return gone;
  }

  *deleteKeys(keys: readonly Key[]): Steps<void> {
    yield* this.#deleteAll(keys);
    this.#revisions.deletions += keys.length;
  }

  *#deleteAll(keys: readonly Key[]): Steps<void> {
    for (let index = 0; index < keys.length; index += 1) {
      this.#deleteKey(keys[index]!);
      if (index % unitsPerStep === unitsPerStep - 1) yield;
    }
  }

  /** Makes the changes of this write and of earlier ones readable. */
  commit(): void {
    this.#revisions.commit(this.revision);
  }

  #deleteKey(key: Key): void {
    const before = this.#revisions.newest(key);
    if (before === undefined) return;
    const deletion = this.#revisions.delete(key, this.#revision);
    this.leases.detach(key, before.lease);
    this.changes.push(deletion);
  }
}
