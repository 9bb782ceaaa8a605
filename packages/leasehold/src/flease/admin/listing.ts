import type { Acceptor } from "../protocol/acceptor.js";
import { emptyEntry } from "../protocol/entries/entry.js";
import type { Entry } from "../protocol/entries/entry.js";
import type { EntryCursor } from "../protocol/entries/entry-table.js";
import type { Reading } from "../protocol/clock.js";
import { looksPerStep } from "./fair-work.js";
import type { Steps } from "./fair-work.js";

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
  /** What its owner lets others read of it, as JSON. */
  readonly data?: string;
}

/** A part of what an acceptor knows. */
export interface ListPage {
  /** Resources with an unfinished lease. */
  readonly held: readonly ListedLease[];
  /** There is more to tell at once. */
  readonly more: boolean;
}

/**
 * A page tells of at most this many resources: with the longest names, labels and data, they must fit into
 * one frame.
 */
export const listedMax = 250;

const encoder = new TextEncoder();

export function listedLease(
  resource: string,
  entry: Readonly<Omit<Entry, "leaseExpiresMonoMs" | "payer">>,
): ListedLease {
  return {
    resource,
    owner: entry.leaseOwner,
    number: entry.leaseNumber,
    sequence: entry.leaseSequence,
    until: entry.leaseExpiresWallMs,
    token: entry.token,
  };
}

/**
 * A place in the unfinished leases below a prefix, in the order in which the acceptor keeps them. That order
 * costs the acceptor nothing, and the place survives whatever comes and goes: what is there from the
 * beginning to the end of the scan is met once; what comes or goes meanwhile may be met or not.
 */
export class Scan {
  readonly #prefix: Uint8Array;
  readonly #acceptor: Acceptor;
  readonly #entries: EntryCursor;
  readonly #entry = emptyEntry();
  readonly #looksPerStep: number;
  isOver = false;

  constructor(acceptor: Acceptor, prefix: string, looks = looksPerStep) {
    this.#acceptor = acceptor;
    this.#prefix = encoder.encode(prefix);
    this.#looksPerStep = looks;
    this.#entries = acceptor.entries();
  }

  /** Hands over the next leases, until `take` says that it has enough. The entry is one reused record. */
  *go(now: () => Reading, take: (resource: string, entry: Readonly<Entry>) => boolean): Steps<void> {
    for (;;) {
      const reading = now();
      for (let looked = 0; looked < this.#looksPerStep; looked += 1) {
        if (!this.#entries.next()) {
          this.isOver = true;
          return;
        }
        if (!this.#entries.nameBegins(this.#prefix)) continue;
        const entry = this.#entries.read(this.#entry);
        if (this.#acceptor.isOver(entry, reading)) continue;
        if (!take(this.#entries.name, entry)) return;
      }
      yield;
    }
  }
}

/** The next page of a scan. */
export function* listPage(scan: Scan, now: () => Reading): Steps<ListPage> {
  const held: ListedLease[] = [];
  yield* scan.go(now, (resource, entry) => held.push(listedLease(resource, entry)) < listedMax);
  return { held, more: !scan.isOver };
}

/** What the acceptors say of one resource. */
export interface MergedLease {
  /** The one with the highest ballot. */
  lease: ListedLease;
  /** How many acceptors told of exactly this lease or an earlier write of the same owner. */
  votes: number;
}

/**
 * Puts the answers of several acceptors together as they come, page by page, so that of each resource one
 * lease is kept and no turn looks at more than a page.
 */
export class MergedListing {
  readonly #merged = new Map<string, MergedLease>();

  get leases(): Iterable<MergedLease> {
    return this.#merged.values();
  }

  /** A page of one acceptor. */
  add(page: readonly ListedLease[]): void {
    for (const lease of page) {
      const known = this.#merged.get(lease.resource);
      if (known === undefined) this.#merged.set(lease.resource, { lease, votes: 1 });
      else addVote(known, lease);
    }
  }
}

function addVote(known: MergedLease, lease: ListedLease): void {
  const before = known.lease;
  const newer =
    lease.number > before.number || (lease.number === before.number && lease.sequence > before.sequence);
  if (before.owner === lease.owner) known.votes += 1;
  else if (newer) known.votes = 1;
  const [told, other] = newer ? [lease, before] : [before, lease];
  // It comes after the lease, to each acceptor by itself.
  const data = other.owner === told.owner && other.token === told.token ? other.data : undefined;
  known.lease = data === undefined || told.data !== undefined ? told : { ...told, data };
}
