import type { Acceptor, Entry } from "./acceptor.js";
import type { Reading } from "./clock.js";

/** What one acceptor says of one resource whose lease is unfinished; goes over the wire as JSON. */
export interface ListedLease {
  readonly resource: string;
  readonly owner: string;
  readonly number: number;
  readonly sequence: number;
  readonly until: number;
  readonly token: number;
  /** What its owner says of itself. */
  readonly label?: string;
}

/** An answer lists at most this many resources: with the longest names and labels, they must fit into one frame. */
export const listedMax = 500;

export function listedLease(resource: string, entry: Readonly<Omit<Entry, "leaseEnd">>): ListedLease {
  return {
    resource,
    owner: entry.leaseOwner,
    number: entry.leaseNumber,
    sequence: entry.leaseSequence,
    until: entry.leaseUntil,
    token: entry.token,
  };
}

/** The first unfinished leases that an acceptor knows of below a prefix and after a name, in order of name. */
export function listLeases(acceptor: Acceptor, prefix: string, now: Reading, after = ""): ListedLease[] {
  let listed: ListedLease[] = [];
  for (const [resource, entry] of acceptor.entries()) {
    if (resource <= after || !resource.startsWith(prefix) || acceptor.isOver(entry, now)) continue;
    listed.push(listedLease(resource, entry));
    // Keeps the first ones and not all, as there may be a hundred times as many.
    if (listed.length >= 2 * listedMax) listed = firstOf(listed);
  }
  return firstOf(listed);
}

function firstOf(listed: ListedLease[]): ListedLease[] {
  return listed.sort((left, right) => (left.resource < right.resource ? -1 : 1)).slice(0, listedMax);
}

export interface MergedLease extends ListedLease {
  /** How many acceptors told of exactly this lease or an earlier write of the same owner. */
  readonly votes: number;
}

/** Puts the answers of several acceptors together: of each resource the lease with the highest ballot. */
export function mergeListings(listings: readonly (readonly ListedLease[])[]): MergedLease[] {
  const merged = new Map<string, MergedLease>();
  for (const lease of listings.flat()) {
    const known = merged.get(lease.resource);
    const newer =
      known === undefined ||
      lease.number > known.number ||
      (lease.number === known.number && lease.sequence > known.sequence);
    const votes = known?.owner === lease.owner ? known.votes + 1 : newer ? 1 : known.votes;
    merged.set(lease.resource, { ...(newer ? lease : known), votes });
  }
  return [...merged.values()].sort((left, right) => (left.resource < right.resource ? -1 : 1));
}
