import type { Lease, Leases } from "../../lease/types.js";
import { check, type Stage } from "./stage.js";

const participants = 3;
const tenuresOfEach = 2;
/**
 * On some grounds a hand-over takes as long as a takeover. The time of this many consecutive ones is enough
 * for all jobs.
 */
const takeoversMax = 20;

const jobsOfEach = 6;

/** The maximum number of microtasks between two calls of a job. */
const ownTurnsMax = 9;

export const exclusionCases = {
  "at most one participant holds a resource": async (stage: Stage) => {
    const tenures = new Tenures("two held the resource");
    const contend = async (leases: Leases) => {
      for (let tenure = 0; tenure < tenuresOfEach; tenure += 1) {
        const lease = await stage.wait(leases, "contended");
        await tenures.use(lease, () => stage.pass(stage.ttlMs / 20));
        await lease.release();
      }
    };
    const opened = await openMany(stage, participants);
    await stage.until(Promise.all(opened.map(contend)), "the contention", 10 * stage.takeoverMs(opened[0]!));
    check(tenures.count === participants * tenuresOfEach, `only ${tenures.count} tenures took place`);
  },

  "every later tenure has a greater token": async (stage: Stage) => {
    const opened = await openMany(stage, 2);
    const tokens: bigint[] = [];
    for (let round = 0; round < 6; round += 1) {
      const leases = opened[round % 2]!;
      const autoRenew = round !== 2;
      const call = leases.acquire(stage.name("tokens"), {
        ttl: stage.ttlMs,
        wait: stage.takeoverMs(leases),
        autoRenew,
      });
      const lease = await stage.until(call, "the next tenure", stage.takeoverMs(leases));
      check(typeof lease.token === "bigint", "the token is not a bigint");
      tokens.push(lease.token);
      // One tenure expires; the others are released.
      if (autoRenew) await stage.until(lease.release(), "release");
    }
    const rises = tokens.every((token, index) => index === 0 || token > tokens[index - 1]!);
    check(rises, `the tokens of successive tenures were ${tokens.join(", ")}`);
  },

  "callers of one participant are served first in, first out, one at a time": async (stage: Stage) => {
    const leases = await stage.open("alice");
    const order: number[] = [];
    const tenures = new Tenures("two callers of one participant held the resource");
    const call = async (place: number) => {
      const lease = await stage.wait(leases, "queue");
      order.push(place);
      await tenures.use(lease, () => stage.pass(stage.ttlMs / 50));
      await lease.release();
    };
    const places = [0, 1, 2, 3];
    await stage.until(Promise.all(places.map(call)), "the queue", 10 * stage.takeoverMs(leases));
    check(order.join() === places.join(), `callers were served in the order ${order.join(", ")}`);
  },

  "callers of one participant that try, race and give up exclude each other": async (stage: Stage) => {
    const opened = await openMany(stage, 2);
    const callers = new Callers(stage);
    const jobs = opened.flatMap((leases) => Array.from({ length: jobsOfEach }, () => callers.job(leases)));
    await stage.until(Promise.all(jobs), "the jobs", takeoversMax * stage.takeoverMs(opened[0]!));
    check(callers.tenures >= jobs.length, `${callers.tenures} tenures for ${jobs.length} jobs`);
  },

  "a lease is not re-entrant": async (stage: Stage) => {
    const leases = await stage.open("alice");
    const lease = await stage.take(leases, "reentrant");
    const again = leases.acquire(lease.resource, { ttl: stage.ttlMs, wait: stage.ttlMs / 4 });
    await stage.rejectsWith(again, "TIMEOUT", "a second acquisition by the same participant");
    lease.assertHeld();
  },

  "different resources do not wait for each other": async (stage: Stage) => {
    const leases = await stage.open("alice");
    const names = Array.from({ length: 10 }, (_, index) => `independent/${index}`);
    const held = await Promise.all(names.map((name) => stage.take(leases, name)));
    for (const lease of held) lease.assertHeld();
  },

  "tryAcquire takes a free resource and returns undefined for one that another has": async (stage: Stage) => {
    const [alice, bob] = (await openMany(stage, 2)) as [Leases, Leases];
    const lease = await stage.takeSoon(alice, "try", "tryAcquire of a free resource");
    await stage.refused(bob, "try", "while a participant held it");
    await stage.refused(alice, "try", "while another caller of its own process held it");
    lease.assertHeld();
  },
};

async function openMany(stage: Stage, count: number): Promise<Leases[]> {
  const names = ["alice", "bob", "carol", "dave"].slice(0, count);
  return Promise.all(names.map((name) => stage.open(name)));
}

/**
 * The leases on a resource that are held at one moment according to their own answers. Those of a stopped
 * process have expired by the time it continues.
 */
class Tenures {
  count = 0;
  readonly #complaint: string;
  readonly #begun = new Set<Lease>();

  constructor(complaint: string) {
    this.#complaint = complaint;
  }

  /** @throws Error if two are held at the beginning or at the end */
  async use(lease: Lease, body: () => Promise<void>): Promise<void> {
    this.#begun.add(lease);
    this.#check();
    await body();
    this.#check();
    this.#begun.delete(lease);
    this.count += 1;
  }

  #check(): void {
    const held = [...this.#begun].filter((lease) => lease.remaining() > 0);
    check(held.length <= 1, `${this.#complaint} at the same time`);
  }
}

/** Callers that want any one of several names, like programs that can use any of several machines. */
class Callers {
  tenures = 0;
  readonly #stage: Stage;
  readonly #names: readonly string[];
  readonly #inside = new Map<string, Tenures>();
  /** Varies the actions of jobs, deterministically. */
  #steps = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#names = ["permit/0", "permit/1", "permit/2", "permit/3"].map((name) => stage.name(name));
  }

  async job(leases: Leases): Promise<void> {
    for (let round = 0; round < tenuresOfEach; round += 1) {
      await this.#ownTurns();
      const first = (await this.#try(leases)) ?? (await this.#any(leases));
      await this.#use(first);
      // Some want the resource again in the same turn in which they release it.
      if (this.#steps % 2 === 0) await this.#use(await this.#acquire(leases, first.resource));
    }
  }

  async #try(leases: Leases): Promise<Lease | undefined> {
    for (const name of this.#names) {
      const lease = await leases.tryAcquire(name, { ttl: this.#stage.ttlMs });
      if (lease !== undefined) return lease;
      await this.#ownTurns();
    }
    return undefined;
  }

  /** The first lease that is acquired; the other calls are cancelled and late leases released. */
  async #any(leases: Leases): Promise<Lease> {
    const others = new AbortController();
    const calls = this.#names.map((name) => this.#acquire(leases, name, others.signal));
    const first = await Promise.any(calls);
    others.abort();
    for (const call of calls)
      void call.then(
        (lease) => void (lease !== first && lease.release()),
        () => undefined,
      );
    return first;
  }

  #acquire(leases: Leases, name: string, signal?: AbortSignal): Promise<Lease> {
    const wait = takeoversMax * this.#stage.takeoverMs(leases);
    return leases.acquire(name, { ttl: this.#stage.ttlMs, wait, ...(signal && { signal }) });
  }

  /** The critical section; its release is not awaited. */
  async #use(lease: Lease): Promise<void> {
    const inside = this.#inside.get(lease.resource) ?? new Tenures(`two callers held ${lease.resource}`);
    this.#inside.set(lease.resource, inside);
    await inside.use(lease, async () => {
      if (this.#steps % 3 > 0) await this.#stage.pass(1);
    });
    this.tenures += 1;
    void lease.release();
  }

  async #ownTurns(): Promise<void> {
    this.#steps += 1;
    for (let left = (this.#steps * 7) % ownTurnsMax; left > 0; left -= 1) await undefined;
  }
}
