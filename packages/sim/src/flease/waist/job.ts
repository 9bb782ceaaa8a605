import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import type { AcquireOptions, Lease, Leases, TryAcquireOptions } from "leasehold/inner/lease/types.js";
import type { Stage } from "../stage/stage.js";
import { expectedCodes, sleepOn } from "./program.js";
import type { Waist } from "./waist.js";

/** The reason for cancelling a wait of the job's own. */
class HasAnother extends Error {}

/** The most callers in one job that begin in one turn, and the most requests by each of them. */
const callersMax = 4;
const roundsMax = 4;

/** The most turns of promises between two calls of one program. */
const ownTurnsMax = 8;

/** The most attempts in a loop, with no pause or a short pause between two of them. */
const triesMax = 8;

/** Shares of the longest lease: the longest time for which a job holds, and for which it is away. */
const holdLeases = 0.15;
const restLeases = 0.05;

/**
 * The share of jobs that take the first of several names, and the share of these that use `race` instead of
 * `any`.
 */
const anyRate = 0.5;
const raceRate = 0.3;

/** The share of jobs that cancel another caller's wait before they ask themselves. */
const recallRate = 0.4;

/** The share of jobs that want the resource again in the turn in which they release it. */
const againRate = 0.4;

/**
 * One of many callers in one process that want the same few names. They combine the waist's calls as programs
 * do: tries in a loop, the first of several names, a semaphore whose permits are names, an acquisition right
 * after a release. It stops when the storm is over.
 */
export class Job {
  readonly #world: Stage;
  readonly #waist: Waist;
  readonly #leases: Leases;
  readonly #names: readonly string[];
  /** The pending waits. */
  readonly #waits: AbortController[] = [];

  constructor(world: Stage, waist: Waist, names: readonly string[]) {
    this.#world = world;
    this.#waist = waist;
    this.#leases = waist.leases;
    this.#names = names;
  }

  begin(): void {
    this.#live().catch((error: unknown) => this.#world.fail(error));
  }

  async #live(): Promise<void> {
    const { random, settings } = this.#world;
    while (!this.#isOver) {
      await this.#sleep(random.exponential(restLeases * settings.ttlMaxMs));
      const callers = Array.from({ length: 1 + random.below(callersMax) }, () => this.#call());
      await Promise.all(callers);
    }
  }

  get #isOver(): boolean {
    return this.#world.calm || this.#waist.closing;
  }

  /** One caller, which asks again and again without a rest. */
  async #call(): Promise<void> {
    for (let rounds = this.#world.random.below(roundsMax); rounds >= 0 && !this.#isOver; rounds -= 1) {
      try {
        const lease = await this.#obtain();
        if (lease !== undefined) await this.#use(lease);
      } catch (error) {
        if (!isExpected(error)) throw error;
      }
    }
  }

  async #obtain(): Promise<Lease | undefined> {
    const { random } = this.#world;
    const name = random.pick(this.#names);
    await this.#world.pass(ownTurnsMax);
    if (random.chance(recallRate)) this.#recall();
    if (random.chance(anyRate)) return (await this.#permit()) ?? this.#wait(this.#names);
    return (await this.#tries(name)) ?? this.#wait([name]);
  }

  /** Cancels the wait of one of the job's other callers. */
  #recall(): void {
    if (this.#waits.length > 0) this.#world.random.pick(this.#waits).abort(new HasAnother());
  }

  /** A semaphore: each name is a permit. */
  async #permit(): Promise<Lease | undefined> {
    for (const name of this.#names) {
      await this.#world.pass(ownTurnsMax);
      const lease = await this.#leases.tryAcquire(name, this.#optionsToTry());
      if (lease !== undefined) return lease;
    }
    return undefined;
  }

  async #tries(name: string): Promise<Lease | undefined> {
    const { random, settings } = this.#world;
    const pauses = random.chance(0.5);
    for (let left = random.below(triesMax); left >= 0; left -= 1) {
      const which = random.chance(0.5) ? name : random.pick(this.#names);
      const lease = await this.#leases.tryAcquire(which, this.#optionsToTry());
      if (lease !== undefined) return lease;
      if (pauses) await this.#sleep(random.next() * settings.rpcTimeoutMs);
      else await this.#world.pass(ownTurnsMax);
    }
    return undefined;
  }

  /**
   * The first of these names that can be had. The other waits are aborted, and leases that they still get are
   * released.
   */
  async #wait(names: readonly string[]): Promise<Lease> {
    const { random } = this.#world;
    const others = new AbortController();
    this.#waits.push(others);
    const options = { ...this.#options(), signal: others.signal };
    const calls = names.map((name) => this.#leases.acquire(name, options));
    for (const call of calls) call.catch(() => {});
    let first: Lease | undefined;
    try {
      first = await (random.chance(raceRate) ? Promise.race(calls) : Promise.any(calls));
      return first;
    } finally {
      this.#waits.splice(this.#waits.indexOf(others), 1);
      others.abort(new HasAnother());
      for (const call of calls)
        void call.then(
          (lease) => void (lease !== first && this.#giveBack(lease)),
          () => {},
        );
    }
  }

  async #use(lease: Lease): Promise<void> {
    const { claims, random, settings } = this.#world;
    const claim = claims.begin(this.#waist.node, lease);
    for (let looks = random.below(3); looks >= 0 && !this.#isOver; looks -= 1) {
      await this.#sleep(random.next() * holdLeases * settings.ttlMaxMs);
      if (claims.look(claim) === 0) return;
    }
    claims.end(claim);
    const released = lease.release();
    claims.look(claim);
    if (this.#isOver || !random.chance(againRate)) return released;
    await this.#use(await this.#wait([lease.resource]));
  }

  #giveBack(lease: Lease): void {
    const { claims } = this.#world;
    claims.end(claims.begin(this.#waist.node, lease));
    void lease.release();
  }

  #options(): AcquireOptions {
    const { random, workload, settings } = this.#world;
    return { ttl: settings.ttlMaxMs, wait: 1 + random.next() * workload.patienceMaxMs };
  }

  /** Draws as many random numbers as a wait does, so that known seeds still show what they showed. */
  #optionsToTry(): TryAcquireOptions {
    const { ttl } = this.#options();
    return { ttl: ttl! };
  }

  #sleep(ms: number): Promise<void> {
    return sleepOn(this.#waist.timers, ms);
  }
}

function isExpected(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isExpected);
  if (error instanceof HasAnother) return true;
  return error instanceof LeaseholdError && (error.code === "CLOSED" || expectedCodes.has(error.code));
}
