import type { World } from "../common/ports.js";
import { keptAlive } from "../common/keep-alive.js";
import { parseDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Duration } from "../lease/options.js";
import type { CallLimits, NamedLeaseClient } from "./core-client.js";

/** A lease of a core that has a name. It is one of etcd's in all else: keys can hang on it, by its id. */
export interface NamedLease {
  readonly name: string;
  /** For `etcdctl put --lease`, in hexadecimal there, and other clients of etcd. */
  readonly id: bigint;
  /** What the core has granted, ms: whole seconds, and no less than its shortest lease. */
  readonly ttlMs: number;
}

/**
 * The named leases of *Patterns of Distributed Systems*, "Lease": of several that register one name, one gets
 * it, and it is free again when that lease ends. Who has one refreshes it, at a third of its `ttlMs` or so.
 *
 * All methods reject with a `LeaseholdError`: `UNREACHABLE`, `NO_QUORUM`, `UNAUTHENTICATED`,
 * `PERMISSION_DENIED`, `CLOSED`; `UNSUPPORTED` of an etcd, which has no named leases.
 */
export interface NamedLeases {
  /**
   * Registers the name. Safe to be repeated by the client: an answer that was lost is asked for again.
   *
   * @param name 1 to 1024 bytes of UTF-8; else it rejects with `INVALID_NAME`
   * @param ttl 1 s or more, rounded up to whole seconds; else `TTL_OUT_OF_RANGE`
   * @returns undefined if another lease has the name
   */
  register(name: string, ttl: Duration): Promise<NamedLease | undefined>;
  /** The lease that has this name, whoever registered it. */
  find(name: string): Promise<NamedLease | undefined>;
  /** Begins its time anew; false if it is over. */
  refresh(lease: NamedLease): Promise<boolean>;
  /** Ends it, and deletes the keys that hang on it. It is no error if it is over. */
  revoke(lease: NamedLease): Promise<void>;
  /** Leaves the leases as they are. */
  close(): void;
}

const nameBytesMax = 1_024;
const ttlMsMin = 1_000;
/** etcd refuses more: nine thousand million seconds. */
const ttlMsMax = 9e12;

export class CoreNamedLeases implements NamedLeases {
  readonly #core: NamedLeaseClient;
  readonly #world: World;
  readonly #limits: CallLimits;
  readonly #drawId: () => bigint;

  constructor(core: NamedLeaseClient, world: World, timeoutMs: number, drawId: () => bigint) {
    this.#core = core;
    this.#world = world;
    this.#limits = { timeoutMs };
    this.#drawId = drawId;
  }

  register(name: string, ttl: Duration): Promise<NamedLease | undefined> {
    return this.#ask(async () => {
      checkName(name);
      const ttlMs = parseDuration(ttl, "ttl");
      if (ttlMs < ttlMsMin || ttlMs > ttlMsMax)
        throw new LeaseholdError("TTL_OUT_OF_RANGE", "the ttl of a named lease is 1s or more");
      const id = this.#drawId();
      const found = await this.#core.registerLease(name, id, Math.ceil(ttlMs / 1_000), this.#limits);
      // Nobody else draws this id.
      return found.id === id ? { name, id, ttlMs: found.seconds * 1_000 } : undefined;
    });
  }

  find(name: string): Promise<NamedLease | undefined> {
    return this.#ask(async () => {
      checkName(name);
      const found = await this.#core.findLease(name, this.#limits);
      return found && { name, id: found.id, ttlMs: found.seconds * 1_000 };
    });
  }

  refresh({ id }: NamedLease): Promise<boolean> {
    return this.#ask(async () => (await this.#core.refreshLease(id, this.#limits)).seconds > 0);
  }

  revoke({ id }: NamedLease): Promise<void> {
    return this.#ask(() => this.#core.revokeLease(id, this.#limits));
  }

  close(): void {
    this.#core.close();
  }

  #ask<T>(work: () => Promise<T>): Promise<T> {
    return keptAlive(this.#world.keepAlive, work);
  }
}

/** No UTF-8 has it, so two names that differ in it alone would be one. */
const loneSurrogate = /\p{Cs}/u;

function checkName(name: string): void {
  const bytes = typeof name === "string" && !loneSurrogate.test(name) ? Buffer.byteLength(name) : 0;
  if (bytes === 0 || bytes > nameBytesMax)
    throw new LeaseholdError("INVALID_NAME", `a lease's name has 1 to ${nameBytesMax} bytes of UTF-8`);
}
