import type { Grant } from "../provider.js";

/** Expired leases are removed at this size, and later at twice the size that then remained. */
const sweepAtMin = 64;

/**
 * Leases that the program has detached. No caller in this process may get their resources before they expire,
 * although the ground would grant them to the same participant.
 */
export class DetachedLeases {
  readonly #release: (grant: Grant) => Promise<void> | undefined;
  readonly #grants = new Map<string, Grant>();
  #sweepAt = sweepAtMin;

  /** @param release tells the provider that an expired grant is no longer needed */
  constructor(release: (grant: Grant) => Promise<void> | undefined) {
    this.#release = release;
  }

  get isEmpty(): boolean {
    return this.#grants.size === 0;
  }

  add(grant: Grant): void {
    this.#grants.set(grant.resource, grant);
    if (this.#grants.size < this.#sweepAt) return;
    for (const each of this.#grants.values()) if (each.remainingMs() === 0) void this.drop(each);
    this.#sweepAt = Math.max(sweepAtMin, 2 * this.#grants.size);
  }

  /** Milliseconds for which a resource is still blocked; 0 if it is not. */
  async leftMs(resource: string): Promise<number> {
    const grant = this.#grants.get(resource);
    if (grant === undefined) return 0;
    const leftMs = grant.remainingMs();
    if (leftMs === 0) await this.drop(grant);
    return leftMs;
  }

  /** The lease has ended. */
  async drop(grant: Grant): Promise<void> {
    if (this.#grants.get(grant.resource) !== grant) return;
    this.#grants.delete(grant.resource);
    await this.#release(grant);
  }

  /** Called on close. Detached leases are not released. */
  clear(): void {
    this.#grants.clear();
  }
}
