import { EventEmitter } from "node:events";
import { randomBytes } from "node:crypto";
import { LeaseholdError, type LeaseSet } from "leasehold";
import { Attempts, lossOf } from "./attempts.js";
import { type RedlockAbortSignal, signalOf } from "./abort-signal.js";
import { type ExecutionResult, type ExecutionStats, ExecutionError, ResourceLockedError } from "./errors.js";
import { type Client, Ground } from "./ground.js";
import { Deadline } from "./deadline.js";
import { checkDuration, defaultSettings, driftMs, type Settings, withSettings } from "./settings.js";
import { Tenure } from "./tenure.js";

/** The second argument of a routine of {@link Redlock.using}. */
export interface UsingContext {
  /** The lock, for its {@link Lock.tokens}. It ends with the routine, however long the routine takes. */
  readonly lock: Lock;
}

type Routine<T> = (signal: RedlockAbortSignal, context: UsingContext) => Promise<T>;

/**
 * npm's `redlock` 5 on leases of Leasehold: the same calls, settings and errors. The package's README lists
 * the differences.
 *
 * A lock's leases renew themselves, and are released at the end of its duration. If the process crashes, the
 * resources stay blocked for the first `duration`, or for the nearest one that the ground allows (from
 * `guarantees.ttlMinMs` to `guarantees.ttlMaxMs`, up to a quarter longer).
 *
 * Each failed attempt emits an `error` event, also with a {@link ResourceLockedError}, and so does each lease
 * lost in `using`. The event needs no listener.
 *
 * @example
 * ```ts
 * import { Redlock } from "@leasehold/redlock";
 *
 * const redlock = new Redlock(leases); // or an address: new Redlock("flease://10.0.0.1:7400")
 * await redlock.using(["reports/nightly"], 5_000, async (signal, { lock }) => {
 *   for (const report of await reportsToWrite()) {
 *     if (signal.aborted) throw signal.error;
 *     await write(report, { token: lock.tokens.get("reports/nightly")! });
 *   }
 * });
 * ```
 */
export class Redlock extends EventEmitter {
  /** The ground, in place of Redis clients. */
  readonly clients: Set<Client>;
  readonly settings: Settings;
  readonly #ground: Ground;
  readonly #attempts: Attempts;
  readonly #quit = new AbortController();

  /**
   * @param client open leases, or one or more addresses as `open` takes them, which are opened by the first
   *   call that needs them. An array is accepted, too, as in redlock.
   * @throws LeaseholdError `INVALID_CONFIG` for an empty array, or for more than one `Leases`.
   */
  constructor(client: Client | Iterable<Client>, settings: Partial<Settings> = {}) {
    super();
    // Node throws an `error` event that has no listener.
    this.on("error", () => undefined);
    this.#ground = new Ground(client);
    const { client: only } = this.#ground;
    this.clients = new Set([only]);
    this.#attempts = new Attempts(only, this.#quit.signal, (error) => this.emit("error", error));
    this.settings = withSettings(defaultSettings, settings);
  }

  /** Closes the leases, which releases all locks. Waiting calls reject with `CLOSED`. */
  async quit(): Promise<void> {
    this.#quit.abort(new LeaseholdError("CLOSED"));
    await this.#ground.close();
  }

  /**
   * Acquires all resources, from 1 to 64, or none, for `duration` milliseconds: a whole number, 1 or more. If
   * one is held, the call retries according to the settings. A single resource is acquired as soon as it is
   * free.
   *
   * @throws ExecutionError when all attempts failed. LeaseholdError `INVALID_DURATION`, and as `acquireAll`
   *   where a retry would fail, too: `INVALID_NAME`, `PERMISSION_DENIED`, `CLOSED`.
   */
  async acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Lock> {
    checkDuration(duration);
    const own = withSettings(this.settings, settings);
    const { value: leases, attempts } = await this.#acquire(resources, duration, own);
    return this.#lock(resources, attempts, leases, duration, own);
  }

  /**
   * Releases the resources. The program must have stopped using them.
   *
   * @throws ExecutionError when the lock was no longer held. There is no retry, as it would fail, too.
   */
  async release(lock: Lock, _settings?: Partial<Settings>): Promise<ExecutionResult> {
    if (await tenureOf(lock)?.release()) return { attempts: [this.#attempts.stats()] };
    replace(lock);
    const error = new ResourceLockedError("The lock was not held: it was released, has expired or was lost.");
    this.emit("error", error);
    throw new ExecutionError("There was nothing to release.", [this.#attempts.stats(error)], {
      cause: error,
    });
  }

  /**
   * Moves the end of a lock to `duration` milliseconds from now, which may be sooner or later than before,
   * and returns a new lock; the expiration of the old one becomes 0. The leases are renewed first.
   *
   * @throws ExecutionError when the lock is no longer held, or when renewals failed although it is.
   *   LeaseholdError `INVALID_DURATION`.
   */
  async extend(existing: Lock, duration: number, settings?: Partial<Settings>): Promise<Lock> {
    checkDuration(duration);
    const own = withSettings(this.settings, settings);
    const tenure = tenureOf(existing);
    if (tenure === undefined || existing.expiration === 0)
      throw new ExecutionError("The lock is no longer held, so it cannot be extended.", []);
    const { attempts } = await this.#attempts.execute({
      settings: own,
      attempt: () => tenure.extend(duration),
    });
    replace(existing);
    const leftMs = duration - driftMs(own, duration);
    return new Lock(this, existing.resources, existing.value, attempts, tenure, leftMs);
  }

  /**
   * Runs the routine while the resources are held, and resolves with its value. The resources are held until
   * the routine has settled, and then released. When a lease is lost, `signal` aborts.
   *
   * @throws as {@link acquire}; the routine's own errors; ExecutionError when a lease was lost before the
   *   routine ended. Error when the duration is not at least 100 ms longer than
   *   `automaticExtensionThreshold`.
   */
  async using<T>(
    resources: string[],
    duration: number,
    settings: Partial<Settings> | undefined,
    routine?: Routine<T>,
  ): Promise<T>;
  async using<T>(resources: string[], duration: number, routine: Routine<T>): Promise<T>;
  async using<T>(
    resources: string[],
    duration: number,
    settingsOrRoutine: Partial<Settings> | Routine<T> | undefined,
    maybeRoutine?: Routine<T>,
  ): Promise<T> {
    checkDuration(duration);
    const isFirst = typeof settingsOrRoutine === "function";
    const routine = isFirst ? settingsOrRoutine : maybeRoutine;
    if (typeof routine !== "function") throw new Error("using needs a routine.");
    const settings = withSettings(this.settings, isFirst ? {} : settingsOrRoutine);
    if (settings.automaticExtensionThreshold > duration - 100)
      throw new Error("The duration must exceed automaticExtensionThreshold by at least 100 ms.");
    const { value: leases, attempts } = await this.#acquire(resources, duration, settings);
    const lock = this.#lock(resources, attempts, leases, Infinity, settings);
    const watched = signalOf(leases, lossOf, (error) => this.emit("error", error));
    let value: T;
    try {
      value = await routine(watched.signal, { lock });
    } catch (error) {
      watched.stop();
      await tenureOf(lock)?.release();
      throw error;
    }
    const { error } = watched.signal;
    watched.stop();
    await lock.release().catch((late: unknown) => {
      throw error ?? late;
    });
    return value;
  }

  #lock(
    resources: string[],
    attempts: ExecutionResult["attempts"],
    leases: LeaseSet,
    durationMs: number,
    settings: Settings,
  ): Lock {
    const tenure = new Tenure(leases, durationMs);
    const leftMs = durationMs === Infinity ? Infinity : durationMs - driftMs(settings, durationMs);
    return new Lock(this, resources, randomBytes(16).toString("hex"), attempts, tenure, leftMs);
  }

  #acquire(resources: string[], durationMs: number, settings: Settings) {
    const attempt = async (waitMs: number) => {
      const leases = await this.#ground.leases();
      const { ttlMinMs, ttlMaxMs } = leases.guarantees;
      const ttl = Math.min(Math.max(durationMs, ttlMinMs), ttlMaxMs);
      return leases.acquireAll(resources, { ttl, wait: waitMs });
    };
    // With several resources, the free ones would be held while the call waits for another.
    return this.#attempts.execute({ settings, attempt, waits: resources.length === 1, survivesLoss: true });
  }
}

/** Resources that are held for a limited time, from {@link Redlock.acquire} or an extension. */
export class Lock {
  readonly redlock: Redlock;
  readonly resources: string[];
  /** Random text, different for each call of `acquire`. It proves nothing: see {@link tokens}. */
  readonly value: string;
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
  readonly #tenure: Tenure;
  readonly #end: Deadline;
  #isReplaced = false;

  /**
   * @param durationMs until the lock's expiration; Infinity for a lock of `using`, which ends with the
   *   routine.
   */
  constructor(
    redlock: Redlock,
    resources: string[],
    value: string,
    attempts: ReadonlyArray<Promise<ExecutionStats>>,
    tenure: Tenure,
    durationMs: number,
  ) {
    this.redlock = redlock;
    this.resources = resources;
    this.value = value;
    this.attempts = attempts;
    this.#tenure = tenure;
    this.#end = new Deadline(durationMs);
    tenures.set(this, tenure);
    replacers.set(this, () => (this.#isReplaced = true));
  }

  /**
   * The time until which the resources are certainly held, by this machine's clock, in milliseconds since
   * 1970. 0 when they are no longer held, and for a lock that was extended. By default it is `duration` - 1 %
   * - 2 ms after the successful attempt, and never later than the leases' own end, which moves with each
   * renewal.
   *
   * Each read checks the clocks, so it is also right after a blocked event loop or a stopped process.
   */
  get expiration(): number {
    const leftMs = this.#isReplaced ? 0 : Math.min(this.#end.leftMs(), this.#tenure.remainingMs());
    return leftMs > 0 ? Math.floor(Date.now() + leftMs) : 0;
  }

  /**
   * The fencing token of each resource, greater for each later lock of it. Pass it to the protected resource,
   * which should refuse a token smaller than the greatest it has seen. Redlock has no tokens.
   */
  get tokens(): ReadonlyMap<string, bigint> {
    return new Map(this.#tenure.leases.leases.map(({ resource, token }) => [resource, token]));
  }

  /** @throws as {@link Redlock.release} */
  async release(): Promise<ExecutionResult> {
    return this.redlock.release(this);
  }

  /** @throws as {@link Redlock.extend} */
  async extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration);
  }
}

const tenures = new WeakMap<Lock, Tenure>();
const replacers = new WeakMap<Lock, () => void>();

/** The leases of a lock; undefined for an object that is not a lock. */
function tenureOf(lock: Lock): Tenure | undefined {
  return tenures.get(lock);
}

/** Invalidates a lock that was extended: the new lock has the expiration. */
function replace(lock: Lock): void {
  replacers.get(lock)?.();
}
