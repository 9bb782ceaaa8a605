import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import type { Lease, Leases, TryAcquireOptions } from "leasehold/inner/lease/types.js";
import type { Stage } from "../stage/stage.js";
import { expectedCodes, sleepOn } from "./program.js";
import type { Waist } from "./waist.js";

/** The resources of sharers: a counted lease on the one, a shared lease on the other. */
const pool = "pool";
const book = "book/~rw";
const limitMax = 3;

/** The share of readers among users of the book, and the share of users of the pool. */
const readerRate = 0.6;
const poolRate = 0.4;

/** The shares of single attempts, of cancelled waits, and of leases without renewal. */
const tryRate = 0.4;
const abortRate = 0.3;
const lapseRate = 0.2;

/** Shares of the longest lease: how long one thinks, and how long it holds at most. */
const thinkLeases = 0.2;
const holdLeases = 1.5;

/** The reason for cancelling a sharer's own wait. */
class ChangedItsMind extends Error {}

/**
 * Whether it belongs to a counted or shared lease: the lease layer holds some of these temporarily, for no
 * program.
 */
export function isOfForms(resource: string): boolean {
  return resource === pool || resource === book || resource.includes("/~");
}

/** A program that takes counted and shared leases, until the storm is over. */
export class Sharer {
  readonly #world: Stage;
  readonly #waist: Waist;
  readonly #leases: Leases;

  constructor(world: Stage, waist: Waist) {
    this.#world = world;
    this.#waist = waist;
    this.#leases = waist.leases;
  }

  begin(): void {
    this.#live().catch((error: unknown) => this.#world.fail(error));
  }

  async #live(): Promise<void> {
    const { random, settings } = this.#world;
    while (!this.#world.calm && !this.#waist.closing) {
      await this.#sleep(random.exponential(thinkLeases * settings.ttlMaxMs));
      try {
        await this.#turn();
      } catch (error) {
        const isKnown =
          error instanceof ChangedItsMind ||
          (error instanceof LeaseholdError && (error.code === "CLOSED" || expectedCodes.has(error.code)));
        if (!isKnown) throw error;
      }
    }
  }

  async #turn(): Promise<void> {
    const { random, settings, workload } = this.#world;
    const isPool = random.chance(poolRate);
    const isReader = !isPool && random.chance(readerRate);
    // A call without a mode is a writer.
    const form: TryAcquireOptions = isPool
      ? { limit: 1 + random.below(limitMax) }
      : isReader
        ? { mode: "shared" }
        : {};
    const options = {
      ...form,
      ttl: settings.ttlMaxMs,
      autoRenew: !random.chance(lapseRate),
      ...this.#signal(),
    };
    const name = isPool ? pool : book;
    const lease = random.chance(tryRate)
      ? await this.#leases.tryAcquire(name, options)
      : await this.#leases.acquire(name, { ...options, wait: 1 + random.next() * workload.patienceMaxMs });
    if (lease === undefined) return;
    if (isPool && lease.slot >= limitMax) throw new Error(`slot ${lease.slot} of ${limitMax}`);
    await this.#use(lease, isReader);
  }

  async #use(lease: Lease, isShared: boolean): Promise<void> {
    const { claims, counters, random, settings } = this.#world;
    counters.shares += 1;
    const claim = claims.begin(this.#waist.node, lease, isShared);
    for (let looks = random.below(4); looks >= 0; looks -= 1) {
      await this.#sleep((random.next() * holdLeases * settings.ttlMaxMs) / 2);
      if (claims.look(claim) === 0) return;
    }
    claims.end(claim);
    const released = lease.release();
    claims.look(claim);
    await released;
  }

  #signal(): { signal?: AbortSignal } {
    const { random, settings } = this.#world;
    if (!random.chance(abortRate)) return {};
    const mind = new AbortController();
    this.#waist.timers.after(random.exponential(settings.ttlMaxMs), () => mind.abort(new ChangedItsMind()));
    return { signal: mind.signal };
  }

  #sleep(ms: number): Promise<void> {
    return sleepOn(this.#waist.timers, ms);
  }
}
