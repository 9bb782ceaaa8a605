import type { World } from "../common/ports.js";
import { keptAlive } from "../common/keep-alive.js";
import { parseDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Duration } from "../lease/options.js";
import type { CallLimits, NamedLeaseClient } from "./core-client.js";

/** A lease of a core that has a name. Otherwise it is a lease as in etcd: keys can be attached to its id. */
export interface NamedLease {
  readonly name: string;
  /** For `etcdctl put --lease` (in hexadecimal) and other clients of etcd. */
  readonly id: bigint;
  /** The granted TTL, ms: whole seconds, and not less than the core's shortest lease. */
  readonly ttlMs: number;
}

/**
 * The named leases of *Patterns of Distributed Systems*, "Lease": of several clients that register a name,
 * one gets it, and the name is free again when that lease ends. The client refreshes its lease at about a
 * third of its `ttlMs`.
 *
 * All methods reject with a `LeaseholdError`: `UNREACHABLE`, `NO_QUORUM`, `UNAUTHENTICATED`,
 * `PERMISSION_DENIED`, `CLOSED`; `UNSUPPORTED` on etcd, which has no named leases.
 */
export interface NamedLeases {
  /**
   * Registers the name. The client repeats the request if an answer is lost.
   *
   * @param name 1 to 1024 bytes of UTF-8; otherwise rejects with `INVALID_NAME`
   * @param ttl 1 s or more, rounded up to whole seconds; otherwise rejects with `TTL_OUT_OF_RANGE`
   * @returns undefined if another lease has the name
   */
  register(name: string, ttl: Duration): Promise<NamedLease | undefined>;
  /** Finds the lease that has this name, whichever client registered it. */
  find(name: string): Promise<NamedLease | undefined>;
  /** Refreshes the lease. False: it has ended. */
  refresh(lease: NamedLease): Promise<boolean>;
  /** Revokes the lease and deletes its keys. Succeeds if the lease has ended. */
  revoke(lease: NamedLease): Promise<void>;
  /** Closes the client. The leases stay until they expire. */
  close(): void;
}

const nameBytesMax = 1_024;
const ttlMsMin = 1_000;
/** etcd's limit: nine billion seconds. */
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
        throw new LeaseholdError("TTL_OUT_OF_RANGE", "the ttl of a named lease must be 1s or more");
      const id = this.#drawId();
      const found = await this.#core.registerLease(name, id, Math.ceil(ttlMs / 1_000), this.#limits);
      // Ids are unique, so another id means another client's lease.
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

/** UTF-8 cannot encode these, so names that differ only in them would be equal. */
const loneSurrogate = /\p{Cs}/u;

function checkName(name: string): void {
  const bytes = typeof name === "string" && !loneSurrogate.test(name) ? Buffer.byteLength(name) : 0;
  if (bytes === 0 || bytes > nameBytesMax)
    throw new LeaseholdError("INVALID_NAME", `a lease's name must have 1 to ${nameBytesMax} bytes of UTF-8`);
}
