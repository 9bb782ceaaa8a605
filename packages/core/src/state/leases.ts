import sortedBtree from "sorted-btree";
import { CoreError } from "./errors.js";
import type { Key } from "./keys.js";

/** A lease as every server has it. Only the leader tracks its expiry, outside the state (`replica`). */
export interface LeaseState {
  readonly id: bigint;
  /** Seconds. */
  readonly ttlSeconds: number;
  /** The name of a registered lease; most leases have none. */
  readonly name: string | undefined;
  /** The keys deleted when it ends. Most leases have one key or none, and a set takes more than 200 bytes. */
  keys: Set<Key> | Key | undefined;
  /** Remaining time by the cluster's own clock when last replicated, ms; undefined before that. */
  leftMs: number | undefined;
  /** Index of the log entry that granted the lease; 0: before the log begins. */
  grantedIndex: number;
}

/** etcd's maximum: nine billion seconds. */
export const ttlSecondsMax = 9_000_000_000n;

/** Memory of a lease: its record, its id, its place in the list, and the leader's own record of it. */
const leaseBytes = 320;

/** In no particular order. */
export function keysOf({ keys }: Pick<LeaseState, "keys">): Iterable<Key> {
  if (keys === undefined) return [];
  return typeof keys === "string" ? [keys] : keys;
}

function inOrder(one: bigint, other: bigint): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/**
 * Leases without deadlines. Creating, revoking and expiring are commands of the log; refreshing is not, and
 * leaves no trace here (*Patterns of Distributed Systems*, "Lease").
 */
export class Leases {
  readonly #leases = new sortedBtree.default<bigint, LeaseState>(undefined, inOrder);
  readonly #names = new Map<string, bigint>();
  #nameBytes = 0;

  /** Approximate memory, including attached keys. */
  get bytes(): number {
    return this.#leases.size * leaseBytes + this.#nameBytes;
  }

  get size(): number {
    return this.#leases.size;
  }

  get(id: bigint): LeaseState | undefined {
    return this.#leases.get(id);
  }

  /** Iterates over all leases by id; tolerates changes meanwhile. */
  all(): IterableIterator<LeaseState> {
    return this.#leases.clone().values();
  }

  named(name: string): LeaseState | undefined {
    const id = this.#names.get(name);
    return id === undefined ? undefined : this.#leases.get(id);
  }

  /** Duplicates are refused here, when applied: concurrent requests pass every earlier check. */
  grant(id: bigint, ttlSeconds: number, name?: string, grantedIndex = 0): LeaseState {
    if (name !== undefined && this.#names.has(name)) throw new CoreError("leaseNameTaken");
    if (this.#leases.has(id)) throw new CoreError("leaseExists");
    const lease: LeaseState = { id, ttlSeconds, name, keys: undefined, leftMs: undefined, grantedIndex };
    this.#leases.set(id, lease);
    if (name !== undefined) {
      this.#names.set(name, id);
      this.#nameBytes += name.length;
    }
    return lease;
  }

  /** Removes the lease; the caller deletes its keys. */
  remove(id: bigint): LeaseState {
    const lease = this.#leases.get(id);
    if (lease === undefined) throw new CoreError("leaseNotFound");
    this.#leases.delete(id);
    if (lease.name !== undefined) {
      this.#names.delete(lease.name);
      this.#nameBytes -= lease.name.length;
    }
    return lease;
  }

  /**
   * Attaches the key to the lease, and detaches it from `before`. 0 means no lease. A key is attached to at
   * most one lease, which its newest version names.
   *
   * @returns the id, as a shared object, since bigints are objects
   */
  attach(key: Key, id: bigint, before: bigint): bigint {
    const lease = id === 0n ? undefined : this.#leases.get(id);
    if (id !== 0n && lease === undefined) throw new CoreError("leaseNotFound");
    if (id !== before) {
      this.detach(key, before);
      if (lease !== undefined) add(lease, key);
    }
    return lease?.id ?? 0n;
  }

  /** The key was deleted. */
  detach(key: Key, before: bigint): void {
    const lease = before === 0n ? undefined : this.#leases.get(before);
    if (lease === undefined) return;
    if (lease.keys instanceof Set) lease.keys.delete(key);
    else if (lease.keys === key) lease.keys = undefined;
  }
}

function add(lease: LeaseState, key: Key): void {
  if (lease.keys === undefined) lease.keys = key;
  else if (typeof lease.keys === "string") lease.keys = new Set([lease.keys, key]);
  else lease.keys.add(key);
}
