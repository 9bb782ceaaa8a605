import type { Acceptor } from "../protocol/acceptor.js";
import { emptyEntry } from "../protocol/entries/entry.js";
import type { Entry } from "../protocol/entries/entry.js";
import type { EntryCursor } from "../protocol/entries/entry-table.js";
import type { Reading } from "../protocol/clock.js";
import { looksPerStep } from "./fair-work.js";
import type { Steps } from "./fair-work.js";

/** An acceptor's report of a resource with an unfinished lease, as JSON on the wire. */
export interface ListedLease {
  readonly resource: string;
  readonly owner: string;
  readonly number: number;
  readonly sequence: number;
  readonly until: number;
  readonly token: number;
  /** Its owner's label. */
  readonly label?: string;
  /** Its owner's public data, as JSON. */
  readonly data?: string;
}

/** A part of an acceptor's leases. */
export interface ListPage {
  /** Resources with an unfinished lease. */
  readonly held: readonly ListedLease[];
  /** Whether more can be read at once. */
  readonly more: boolean;
}

/**
 * Upper bound of resources per page: with the longest names, labels and data, they must fit into one frame.
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
 * A position in the unfinished leases below a prefix, in the acceptor's own order. That order costs the
 * acceptor nothing, and the position stays valid under changes: leases that exist throughout the scan are
 * visited once; others may be visited or not.
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

  /** Passes on the next leases, until `take` returns false. The entry is one reused record. */
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

/** The acceptors' reports of one resource. */
export interface MergedLease {
  /** The one with the highest ballot. */
  lease: ListedLease;
  /** Number of acceptors that reported exactly this lease or an earlier write of the same owner. */
  votes: number;
}

/**
 * Merges the answers of several acceptors as they arrive, page by page: it keeps one lease per resource,
 * and no turn visits more than a page.
 */
export class MergedListing {
  readonly #merged = new Map<string, MergedLease>();

  get leases(): Iterable<MergedLease> {
    return this.#merged.values();
  }

  /** Adds a page of one acceptor. */
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
  // Data follows the lease, separately on each acceptor.
  const data = other.owner === told.owner && other.token === told.token ? other.data : undefined;
  known.lease = data === undefined || told.data !== undefined ? told : { ...told, data };
}
