import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import type { ErrorCode } from "leasehold/inner/lease/errors.js";
import type { Timers } from "leasehold/inner/common/ports.js";
import type { Lease, Leases } from "leasehold/inner/lease/types.js";
import type { Stage } from "../stage/stage.js";
import type { Claim, Waiter } from "../stage/observer.js";
import type { Waist } from "./waist.js";

/** The reason for cancelling a program's own wait. */
class ChangedItsMind extends Error {}

/** The errors that a program must expect. */
export const expectedCodes: ReadonlySet<ErrorCode> = new Set([
  "LEASE_LOST",
  "LEASE_HELD",
  "LEASE_BROKEN",
  "NO_QUORUM",
  "OVERLOADED",
  "TIMEOUT",
  "RESOURCES_FULL",
  "CLOCK_SKEW",
  "UNREACHABLE",
  "NOT_WAITING",
]);

/** Programs look at their leases about this often while they hold. */
const looksPerLease = 4;

/** The share of holders that obey a request to release. */
const obedience = 0.7;

/** The share of cancellations that are too late. */
const tooLateRate = 0.3;

/** In calm weather nobody keeps others waiting: shares of the longest lease. */
const calmThinkLeases = 0.05;
const calmHoldLeases = 0.3;

/** How many changes a watching program reads before it leaves. */
const changesRead = 4;

/**
 * A program that uses the waist as real programs do: it waits for one resource, holds it, looks at its lease,
 * releases it, changes its mind, leads, asks who holds what, and takes it from others. One life of one node
 * has several of them.
 */
export class Program {
  readonly #world: Stage;
  readonly #waist: Waist;
  readonly #leases: Leases;
  readonly #resource: string;
  /** The program has held the resource since the last fault. */
  #servedInCalm = false;

  constructor(world: Stage, waist: Waist, resource: string) {
    this.#world = world;
    this.#waist = waist;
    this.#leases = waist.leases;
    this.#resource = resource;
  }

  begin(): void {
    this.#live().catch((error: unknown) => this.#world.fail(error));
  }

  async #live(): Promise<void> {
    const { random, workload, settings } = this.#world;
    while (!this.#servedInCalm) {
      const thinkMs = random.exponential(workload.thinkMeanMs);
      await this.#sleep(this.#world.calm ? Math.min(thinkMs, calmThinkLeases * settings.ttlMaxMs) : thinkMs);
      try {
        await this.#turn();
      } catch (error) {
        if (error instanceof LeaseholdError && error.code === "CLOSED") return;
        const known = error instanceof LeaseholdError && expectedCodes.has(error.code);
        if (!known && !(error instanceof ChangedItsMind)) throw error;
      }
    }
  }

  #turn(): Promise<void> {
    const { random, calm, plan } = this.#world;
    const { queryRate, breakRate, electRate, tryRate } = plan.waist;
    if (!calm && random.chance(queryRate)) return this.#ask();
    if (!calm && random.chance(breakRate)) return this.#takeFromOthers();
    if (random.chance(electRate)) return this.#lead();
    if (!calm && random.chance(tryRate)) return this.#try();
    return this.#acquire();
  }

  async #try(): Promise<void> {
    const lease = await this.#leases.tryAcquire(this.#resource, { ttl: this.#ttlMs() });
    if (lease !== undefined) await this.#use(lease);
  }

  async #acquire(): Promise<void> {
    const { random, calm, workload, plan, claims } = this.#world;
    const short = !calm && random.chance(plan.waist.shortRate);
    const renews = !short || random.chance(0.5);
    const waiter = claims.waits(this.#waist.node, this.#resource);
    let lease: Lease;
    try {
      lease = await this.#leases.acquire(this.#resource, {
        ttl: this.#ttlMs(),
        wait: calm ? Infinity : random.next() * workload.patienceMaxMs,
        autoRenew: renews,
        ...this.#signal(),
        ...(short && renews && { maxHold: random.between(0.3, 3) * this.#world.settings.ttlMaxMs }),
      });
    } finally {
      claims.waited(waiter);
    }
    await this.#use(lease);
  }

  async #use(lease: Lease): Promise<void> {
    const { claims, random, settings } = this.#world;
    const claim = claims.begin(this.#waist.node, lease);
    await this.#hold(claim);
    claims.end(claim);
    const released = lease.release();
    // Counts as not held from the time of the call.
    claims.look(claim);
    await released;
    await this.#sleep(random.next() * settings.rpcTimeoutMs);
    // An ended lease stays ended, even if the program has not noticed.
    claims.look(claim);
  }

  async #lead(): Promise<void> {
    const { claims, counters, observers } = this.#world;
    const { node } = this.#waist;
    const campaign = {};
    let waiter: Waiter | undefined = claims.waits(node, this.#resource);
    let led: Claim | undefined;
    const work = async (lease: Lease) => {
      if (waiter !== undefined) claims.waited(waiter);
      waiter = undefined;
      counters.electionsWon += 1;
      const claim = (led = claims.begin(node, lease));
      for (const leads of observers.leads) leads(campaign, claim, true);
      await this.#hold(claim);
      for (const leads of observers.leads) leads(campaign, claim, false);
      claims.end(claim);
      if (lease.remaining() > 0) return;
      counters.electionsLost += 1;
      waiter = claims.waits(node, this.#resource);
    };
    try {
      await this.#leases.lead(this.#resource, work, { ttl: this.#ttlMs(), ...this.#signal() });
    } finally {
      if (waiter !== undefined) claims.waited(waiter);
    }
    if (led !== undefined) claims.look(led);
  }

  /** Uses the resource for a while, as long as the lease lasts. */
  async #hold(claim: Claim): Promise<void> {
    const { random, claims, calm, settings, counters } = this.#world;
    const { lease } = claim;
    this.#servedInCalm ||= calm;
    const endMs = this.#waist.clock.monotonicMs() + this.#holdMs(lease.ttlMs);
    for (;;) {
      const leftMs = endMs - this.#waist.clock.monotonicMs();
      if (leftMs <= 0) return;
      await this.#sleep(Math.min(leftMs, random.exponential(lease.ttlMs / looksPerLease)));
      if (claims.look(claim) === 0) break;
      if (random.chance(0.2)) lease.assertHeld();
      if (lease.signal.aborted) return; // A leader that is asked to step down.
      if (lease.releaseRequested.aborted && random.chance(obedience)) {
        counters.requestsFollowed += 1;
        return;
      }
    }
    // A program that has lost its lease may notice late; the lease must still show as lost.
    await this.#sleep(random.next() * settings.ttlMaxMs);
    claims.look(claim);
  }

  #holdMs(ttlMs: number): number {
    const { random, calm, workload } = this.#world;
    if (calm) return random.next() * calmHoldLeases * ttlMs;
    if (random.chance(workload.releaseRate)) return ttlMs * random.magnitude(0.001, 0.3);
    return random.exponential(2 * ttlMs);
  }

  async #ask(): Promise<void> {
    const { random, counters, settings } = this.#world;
    const options = { timeout: 4 * settings.rpcTimeoutMs };
    const which = random.below(4);
    if (which === 0) {
      const { state } = await this.#leases.holder(this.#resource, options);
      if (state !== "unknown") counters.queriesAnswered += 1;
    } else if (which === 1) {
      await this.#leases.list("", { ...options, onIncomplete: () => {} });
      counters.queriesAnswered += 1;
    } else if (which === 2) {
      const { state } = await this.#leases.explain(this.#resource, options);
      if (state !== "unknown") counters.queriesAnswered += 1;
    } else {
      await this.#watch();
    }
  }

  async #watch(): Promise<void> {
    const { random, counters, settings } = this.#world;
    const patience = new AbortController();
    this.#waist.timers.after(random.next() * 2 * settings.ttlMaxMs, () => patience.abort());
    let read = 0;
    for await (const _change of this.#leases.watch("", { signal: patience.signal })) {
      counters.changesSeen += 1;
      if ((read += 1) === changesRead) break;
    }
  }

  async #takeFromOthers(): Promise<void> {
    const { random, counters, settings } = this.#world;
    const options = { timeout: 4 * settings.rpcTimeoutMs };
    const dice = random.next();
    if (dice < 0.25) {
      await this.#leases.requestRelease(this.#resource, options);
    } else if (dice < 0.5) {
      const { done } = await this.#leases.handOver(
        this.#resource,
        random.pick(this.#world.nodes).owner,
        options,
      );
      if (done) counters.namedHeirs += 1;
    } else {
      const { done } = await this.#leases.break(this.#resource, options);
      if (done) counters.breaks += 1;
    }
  }

  /** For some calls, a signal that aborts at some time. */
  #signal(): { signal?: AbortSignal } {
    const { random, calm, plan, settings } = this.#world;
    if (calm || !random.chance(plan.waist.abortRate)) return {};
    const mind = new AbortController();
    const change = () => mind.abort(new ChangedItsMind());
    if (random.chance(tooLateRate)) this.#waist.tooLate.set(this.#resource, change);
    else this.#waist.timers.after(random.exponential(settings.ttlMaxMs), change);
    return { signal: mind.signal };
  }

  #ttlMs(): number {
    const { random, settings, workload } = this.#world;
    if (!workload.mixedTtl) return settings.ttlMaxMs;
    return Math.ceil(random.between(settings.ttlMinMs, settings.ttlMaxMs));
  }

  #sleep(ms: number): Promise<void> {
    return sleepOn(this.#waist.timers, ms);
  }
}

export function sleepOn(timers: Timers, ms: number): Promise<void> {
  return new Promise((resolve) => {
    timers.after(ms, resolve);
  });
}
