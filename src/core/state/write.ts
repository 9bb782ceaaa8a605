import type { Key, KeyRange } from "./keys.js";
import type { Leases } from "./leases.js";
import type { Revisions, Version } from "./revisions.js";

/** What one write transaction changes: everything in one revision, or nothing and no revision. */
export class Write {
  readonly revisions: Revisions;
  readonly leases: Leases;
  readonly #revision: number;
  /** What it has changed so far, in order. */
  readonly changes: Version[] = [];

  constructor(revisions: Revisions, leases: Leases) {
    this.revisions = revisions;
    this.leases = leases;
    this.#revision = revisions.current + 1;
  }

  /** The revision that a read inside of it sees: its own changes, too. */
  get revision(): number {
    return this.revisions.current;
  }

  /** The lease must exist. */
  put(key: Key, value: Uint8Array, lease: bigint): void {
    this.leases.attach(key, lease);
    const version = this.revisions.put(key, value, lease, this.#revision);
    this.#changed(version);
  }

  /** What was deleted, as it was before. */
  delete(range: KeyRange): Version[] {
    const gone = [...this.revisions.range(range, this.revisions.current)];
    for (const { key } of gone) this.deleteKey(key);
    return gone;
  }

  deleteKey(key: Key): void {
    const deletion = this.revisions.delete(key, this.#revision);
    if (deletion === undefined) return;
    this.leases.detach(key);
    this.#changed(deletion);
  }

  #changed(version: Version): void {
    this.revisions.current = this.#revision;
    this.changes.push(version);
  }
}
