import type { ErrorCode } from "../../lease/errors.js";
import type { Lease, Leases, TryAcquireOptions } from "../../lease/types.js";

/** The ground under test. */
export interface ConformanceGround {
  /** Opens a separate participant, as another process would. */
  open(name: string): Promise<Leases>;
  /**
   * The TTL for the suite's leases, in milliseconds. In real time 1 to 2 s: on a slow machine shorter ones
   * make cases fail.
   */
  readonly ttlMs: number;
  /** Advances virtual time, or sleeps. May be called concurrently. */
  pass(ms: number): Promise<void>;
  /**
   * Stops the process of one participant for this long, if the ground supports it; time passes for the
   * others.
   */
  freeze?(leases: Leases, ms: number): Promise<void>;
  /** Closes all participants that this ground opened. */
  close(): Promise<void>;
}

export interface ConformanceCase {
  readonly name: string;
  /** Resolves when the ground conforms; rejects with an error that describes the deviation. */
  run(ground: ConformanceGround): Promise<void>;
}

/** The longest step of time while the suite waits, as a fraction of the TTL. */
const stepsPerTtl = 50;

/** A case's tools: a ground, its own names, and waits that also advance virtual time. */
export class Stage {
  readonly ttlMs: number;
  readonly ground: ConformanceGround;
  /** Cases may share a ground that outlives them: the leases of one must not affect another. */
  readonly prefix = `conformance/${globalThis.crypto.randomUUID()}/`;

  constructor(ground: ConformanceGround) {
    this.ground = ground;
    this.ttlMs = ground.ttlMs;
  }

  name(resource: string): string {
    return this.prefix + resource;
  }

  open(name: string): Promise<Leases> {
    return this.until(this.ground.open(name), `opening ${name}`);
  }

  pass(ms: number): Promise<void> {
    return this.ground.pass(ms);
  }

  /** Waits for the promise while time passes; fails if that takes longer than `limitMs`. */
  async until<T>(promise: Promise<T>, what: string, limitMs = 20 * this.ttlMs): Promise<T> {
    const seen = { isSettled: false };
    const settle = () => {
      seen.isSettled = true;
    };
    promise.then(settle, settle);
    await Promise.resolve();
    const stepMsMax = this.ttlMs / stepsPerTtl;
    for (let stepMs = 1, passedMs = 0; !seen.isSettled; stepMs = Math.min(2 * stepMs, stepMsMax)) {
      check(passedMs <= limitMs, `${what} did not end within ${limitMs} ms`);
      await this.pass(stepMs);
      passedMs += stepMs;
    }
    return promise;
  }

  /** Repeats a query until its answer is accepted; fails if that takes longer than `limitMs`. */
  async eventually<T>(
    ask: () => Promise<T>,
    isGood: (answer: T) => boolean,
    what: string,
    limitMs: number,
  ): Promise<T> {
    for (let passedMs = 0; ; passedMs += this.ttlMs / stepsPerTtl) {
      const answer = await this.until(ask(), what);
      if (isGood(answer)) return answer;
      check(passedMs <= limitMs, `${what} did not happen within ${limitMs} ms`);
      await this.pass(this.ttlMs / stepsPerTtl);
    }
  }

  /** Acquires a free resource. */
  async take(
    leases: Leases,
    resource: string,
    options: Pick<TryAcquireOptions, "autoRenew" | "data"> = {},
  ): Promise<Lease> {
    const call = leases.acquire(this.name(resource), { ttl: this.ttlMs, wait: 20 * this.ttlMs, ...options });
    return this.until(call, `acquire of a free resource (${resource})`);
  }

  /**
   * Acquires a resource that must be free now, or at least long before a forgotten lease on it would expire.
   */
  async takeSoon(leases: Leases, resource: string, what: string): Promise<Lease> {
    const ask = () => leases.tryAcquire(this.name(resource), { ttl: this.ttlMs });
    const lease = await this.eventually(ask, (answer) => answer !== undefined, what, this.ttlMs / 2);
    return lease!;
  }

  /** Waits for a resource, however long a forgotten lease may block it. */
  wait(leases: Leases, resource: string): Promise<Lease> {
    const call = leases.acquire(this.name(resource), { ttl: this.ttlMs, wait: this.takeoverMs(leases) });
    // A case that fails before it awaits this call must not leave an unhandled rejection.
    call.catch(() => undefined);
    return call;
  }

  /**
   * The longest time until another participant gets a lease that nobody renews, with some allowance for
   * retries.
   */
  takeoverMs(leases: Leases): number {
    return leases.guarantees.takeoverMsMax + 10 * this.ttlMs;
  }

  /** Fails unless another participant is refused. */
  async refused(leases: Leases, resource: string, when: string): Promise<void> {
    const lease = await this.until(
      leases.tryAcquire(this.name(resource), { ttl: this.ttlMs }),
      `tryAcquire ${when}`,
    );
    check(lease === undefined, `another got the resource ${when}`);
  }

  async rejectsWith(promise: Promise<unknown>, code: ErrorCode, what: string): Promise<void> {
    const error = await this.until(rejection(promise), what);
    check(codeOf(error) === code, `${what} ended with ${describe(error)} instead of ${code}`);
  }
}

export function check(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new Error(otherwise);
}

/** The promise's rejection; `undefined` if it resolves. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return error;
  }
}

export function thrown(run: () => void): unknown {
  try {
    run();
    return undefined;
  } catch (error) {
    return error;
  }
}

export function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

export function describe(error: unknown): string {
  return error === undefined ? "success" : String(error);
}
