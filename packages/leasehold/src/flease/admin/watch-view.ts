import type { CellMap } from "../protocol/cells.js";
import type { FeedPage } from "./watch-feed.js";
import type { ListedLease } from "./listing.js";

/** The members' combined report of one resource. */
export type Verdict = { readonly state: "held"; readonly lease: ListedLease } | { readonly state: "free" };

/** Merges several members' reports of the leases below a prefix. */
export class WatchView {
  readonly #cells: CellMap;
  /** Unfinished leases by reporting member; undefined while it has reported nothing. */
  readonly #reported: (Map<string, ListedLease> | undefined)[] = [];

  constructor(cells: CellMap) {
    this.#cells = cells;
  }

  /** A member's first complete report, or a new complete one. Returns the resources to re-evaluate. */
  begin(member: number, leases: Map<string, ListedLease>): Set<string> {
    const touched = new Set(this.#reported[member]?.keys());
    for (const resource of leases.keys()) touched.add(resource);
    this.#reported[member] = leases;
    // Resources missing from it may now be free.
    for (const others of this.#reported) for (const resource of others?.keys() ?? []) touched.add(resource);
    return touched;
  }

  apply(member: number, page: FeedPage): Set<string> {
    const leases = this.#reported[member];
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

  /** The member is unreachable: its reports no longer count. */
  forget(member: number): void {
    this.#reported[member] = undefined;
  }

  /** `undefined` while no majority of the resource's cell agrees. */
  judge(resource: string): Verdict | undefined {
    const cell = this.#cells.of(resource);
    const leases: ListedLease[] = [];
    let silent = 0;
    for (const member of cell.members) {
      const lease = this.#reported[member]?.get(resource);
      if (lease !== undefined) leases.push(lease);
      else if (this.#reported[member] === undefined) silent += 1;
    }
    for (const lease of leases) {
      const same = leases.filter((one) => one.owner === lease.owner && one.token === lease.token);
      if (same.length < cell.majority) continue;
      // Data follows the lease, separately on each member.
      return { state: "held", lease: same.find(({ data }) => data !== undefined) ?? lease };
    }
    const free = cell.members.length - silent - leases.length;
    return free >= cell.majority ? { state: "free" } : undefined;
  }
}
