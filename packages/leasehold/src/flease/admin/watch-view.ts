import type { CellMap } from "../protocol/cells.js";
import type { FeedPage } from "./watch-feed.js";
import type { ListedLease } from "./listing.js";

/** What the members' words on one resource come to. */
export type Verdict = { readonly state: "held"; readonly lease: ListedLease } | { readonly state: "free" };

/** What several members told of what is held below a prefix, put together. */
export class WatchView {
  readonly #cells: CellMap;
  /** By member: the unfinished leases that it told of; undefined while it has told nothing. */
  readonly #told: (Map<string, ListedLease> | undefined)[] = [];

  constructor(cells: CellMap) {
    this.#cells = cells;
  }

  /**
   * The first word of a member, or a new first word: everything that it knows. Returns the resources to
   * judge.
   */
  begin(member: number, leases: Map<string, ListedLease>): Set<string> {
    const touched = new Set(this.#told[member]?.keys());
    for (const resource of leases.keys()) touched.add(resource);
    this.#told[member] = leases;
    // What it does not know of may be free by that.
    for (const others of this.#told) for (const resource of others?.keys() ?? []) touched.add(resource);
    return touched;
  }

  apply(member: number, page: FeedPage): Set<string> {
    const leases = this.#told[member];
    const touched = new Set<string>();
    for (const lease of page.held) {
      leases?.set(lease.resource, lease);
      touched.add(lease.resource);
    }
    for (const resource of page.free) {
      leases?.delete(resource);
      touched.add(resource);
    }
    return touched;
  }

  /** The member cannot be heard: what it said counts no more. */
  forget(member: number): void {
    this.#told[member] = undefined;
  }

  /** `undefined` as long as no majority of the resource's cell says the same. */
  judge(resource: string): Verdict | undefined {
    const cell = this.#cells.of(resource);
    const leases: ListedLease[] = [];
    let silent = 0;
    for (const member of cell.members) {
      const lease = this.#told[member]?.get(resource);
      if (lease !== undefined) leases.push(lease);
      else if (this.#told[member] === undefined) silent += 1;
    }
    for (const lease of leases) {
      const same = leases.filter((one) => one.owner === lease.owner && one.token === lease.token);
      if (same.length < cell.majority) continue;
      // It comes after the lease, to each member by itself.
      return { state: "held", lease: same.find(({ data }) => data !== undefined) ?? lease };
    }
    const free = cell.members.length - silent - leases.length;
    return free >= cell.majority ? { state: "free" } : undefined;
  }
}
