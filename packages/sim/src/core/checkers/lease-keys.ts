import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { Key } from "@leasehold/core/inner/state/keys.js";
import { isDeletion, type Version } from "@leasehold/core/inner/state/revisions.js";
import type { Applied, CoreState } from "@leasehold/core/inner/state/state.js";
import type { ReferenceObserver } from "../world/reference.js";
import type { CoreReport } from "../world/invariants.js";

/**
 * The keys attached to a lease are deleted when it ends, in one revision, which contains no other lease's
 * keys and no other key.
 */
export class LeaseKeys implements ReferenceObserver {
  readonly #report: CoreReport;
  readonly #keys = new Map<Key, bigint>();

  constructor(report: CoreReport) {
    this.#report = report;
  }

  applied({ changes, ended }: Applied, { body }: Command): void {
    const deleted = new Set(changes.filter((change) => isDeletion(change)).map(({ key }) => key));
    for (const [key, lease] of this.#keys)
      if (ended.includes(lease) && !deleted.has(key))
        this.#report("lease-keys", `lease ${lease} ended, and its key ${key} stayed`);
    const isByEnd = body.case === "leaseExpire" || body.case === "leaseRevoke";
    for (const key of isByEnd ? deleted : [])
      if (!ended.includes(this.#keys.get(key) ?? 0n))
        this.#report("lease-keys", `${key} went with a lease that it did not hang on`);
    if (isByEnd) this.#checkRevisions(changes);
    for (const change of changes)
      if (isDeletion(change) || change.lease === 0n) this.#keys.delete(change.key);
      else this.#keys.set(change.key, change.lease);
  }

  replaced({ revisions }: CoreState): void {
    this.#keys.clear();
    for (const history of revisions.histories()) {
      const newest = history.at(-1)!;
      if (!isDeletion(newest) && newest.lease !== 0n) this.#keys.set(newest.key, newest.lease);
    }
  }

  #checkRevisions(changes: readonly Version[]): void {
    const revisionOf = new Map<bigint, number>();
    for (const { key, modified } of changes) {
      const lease = this.#keys.get(key)!;
      const before = revisionOf.get(lease) ?? modified;
      revisionOf.set(lease, modified);
      if (before !== modified)
        this.#report("lease-keys", `lease ${lease} ended in ${before}, and in ${modified}`);
    }
    if (new Set(revisionOf.values()).size !== revisionOf.size)
      this.#report("lease-keys", "two leases ended in one revision");
  }
}
