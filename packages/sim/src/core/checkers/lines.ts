import { least } from "leasehold/inner/common/lists.js";
import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { isDeletion, type Version } from "@leasehold/core/inner/state/revisions.js";
import type { Applied } from "@leasehold/core/inner/state/state.js";
import { bytesOfValue } from "@leasehold/core/inner/state/values.js";
import type { ReferenceObserver } from "../world/reference.js";
import { text } from "../world/requests.js";
import type { CoreReport } from "../world/invariants.js";

interface Place {
  readonly holder: string;
  readonly created: number;
}

/**
 * Queues are strictly ordered: the next holder's place was created before all other places, by revision. Two
 * places of one process are not distinguished.
 */
export class Lines implements ReferenceObserver {
  readonly #report: CoreReport;
  readonly #line: string;
  readonly #key: string;
  readonly #places = new Map<string, Place>();
  /** By holder. If a caller has lost its place, its last place counts. */
  readonly #last = new Map<string, number>();
  /** By token: the callers that were passed over. None of them may ever get that tenure. */
  readonly #passed = new Map<bigint, string>();

  constructor(report: CoreReport, resource: string) {
    this.#report = report;
    this.#line = `leasehold/lines/${resource}/~`;
    this.#key = `leasehold/leases/${resource}`;
  }

  applied({ changes }: Applied, _command: Command): void {
    for (const change of changes) {
      if (change.key.startsWith(this.#line)) this.#moved(change);
      else if (change.key === this.#key && change.version === 1) this.#given(change);
    }
  }

  /** A program has acquired the name. */
  began(token: bigint, process: string): void {
    const passed = this.#passed.get(token);
    if (passed !== undefined) this.#report("line", `${process} was served before ${passed}`);
  }

  #moved(change: Version): void {
    if (isDeletion(change)) this.#places.delete(change.key);
    else if (change.version === 1) {
      const holder = holderIn(change);
      this.#places.set(change.key, { holder, created: change.created });
      this.#last.set(holder, change.created);
    }
  }

  #given(change: Version): void {
    const holder = holderIn(change);
    const places = [...this.#places.values()];
    const own = places.filter((place) => place.holder === holder).map(({ created }) => created);
    const mine = own.length > 0 ? least(own) : (this.#last.get(holder) ?? 0);
    const before = places.find((place) => place.holder !== holder && place.created < mine);
    if (before !== undefined)
      this.#passed.set(
        BigInt(change.created),
        `${before.holder}, whose place is of revision ${before.created}`,
      );
  }
}

function holderIn({ value }: Version): string {
  return (JSON.parse(text(bytesOfValue(value))) as { holder: string }).holder;
}
