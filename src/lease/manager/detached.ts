import type { Grant } from "../provider.js";

/** Those that have run out are looked for at so many, and again at twice as many as are left then. */
const sweepAtMin = 64;

/**
 * Leases that the program has let run out on purpose: nobody here may have their resources before that,
 * though a ground would give them to the same participant.
 */
export class Detached {
  readonly #release: (grant: Grant) => Promise<void> | undefined;
  readonly #grants = new Map<string, Grant>();
  #sweepAt = sweepAtMin;

  /** @param release tells the provider that a grant which has run out is not needed any more */
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

  /** How long a resource is still blocked, ms; 0 when it is not. */
  async leftMs(resource: string): Promise<number> {
    const grant = this.#grants.get(resource);
    if (grant === undefined) return 0;
    const leftMs = grant.remainingMs();
    if (leftMs === 0) await this.drop(grant);
    return leftMs;
  }

  /** It has ended. */
  async drop(grant: Grant): Promise<void> {
    if (this.#grants.get(grant.resource) !== grant) return;
    this.#grants.delete(grant.resource);
    await this.#release(grant);
  }

  /** Nobody asks any more; none of them is given back. */
  clear(): void {
    this.#grants.clear();
  }
}
