import { LeaseholdError } from "../../lease/errors.js";
import type { AcquireOptions, Lease, Leases } from "../../lease/types.js";
import { checkResourceName } from "../../lease/resource-name.js";
import type { Timers } from "../../common/ports.js";
import type { StoreAnswer, StoreRequest } from "../store.js";
import { contentOf, datumRegister, type DatumStore } from "./datum-store.js";

/**
 * Renewals per write. A write may share a renewal already in flight that does not include it: then it needs
 * the next one.
 */
const renewalsMax = 3;

/** Timeout of a read at the store, in δ. */
const delaysPerRead = 3;

/** The datum stored with a lease. */
export interface GuardedDatum {
  /** Absent if none was ever written. */
  readonly datum?: string;
  /** The token under which the cell was last written; absent if it never was. */
  readonly token?: bigint;
}

/** A lease from {@link GuardedCells.acquire}, with the datum that it guards. */
export interface GuardedLease extends AsyncDisposable {
  /** An ordinary lease: it renews itself and reports its loss. */
  readonly lease: Lease;
  /**
   * The datum as the holder knows it: the one found when it acquired the lease, or the last one it has
   * written since.
   */
  readonly datum: string | undefined;
  /**
   * Replaces the datum and renews the lease, in one operation of the store. Resolves when the store has
   * acknowledged it. The store itself refuses the write once another participant has acquired the lease,
   * however late the write arrives.
   *
   * @throws LeaseholdError `LEASE_LOST` when the lease is over; if it was over before the call, nothing was
   *   written. `NO_QUORUM` when the store did not answer in time: the lease is still valid, the datum may or
   *   may not have been written, and the next write determines it. `STORE_FULL` when the datum is too long.
   *
   * @example
   * ```ts
   * await using cells = await openGuardedCells("delta+memory:guarded-write");
   * await using guarded = await cells.acquire("counter");
   * await guarded.write(String(Number(guarded.datum ?? 0) + 1));
   * ```
   */
  write(datum: string): Promise<void>;
  /** Releases the lease; the datum stays. Idempotent. */
  release(): Promise<void>;
}

/** Leases whose records share one cell with the datum that they guard. */
export interface GuardedCells extends AsyncDisposable {
  /** The leases themselves: queries, watches, guarantees. */
  readonly leases: Leases;
  /** The longest datum, in bytes of its JSON text. */
  readonly datumBytesMax: number;
  /** Waits for the lease as `leases.acquire` does, and rejects with the same errors. */
  acquire(resource: string, options?: AcquireOptions): Promise<GuardedLease>;
  /** The present datum, for any caller. Rejects with `STORE_…`. */
  read(resource: string): Promise<GuardedDatum>;
  close(): Promise<void>;
}

class HeldCell implements GuardedLease {
  readonly lease: Lease;
  readonly #store: DatumStore;
  #datum: string | undefined;
  /** Writes run one after another, in the order of the calls. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param leave is called when the lease is over, because later writes are another holder's */
  constructor(lease: Lease, store: DatumStore, leave: () => void) {
    this.lease = lease;
    this.#store = store;
    this.#datum = this.datum;
    const { signal } = lease;
    const end = () => {
      this.#datum = this.datum;
      leave();
    };
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  }

  get datum(): string | undefined {
    const { resource, token } = this.lease;
    // If a write's answer was lost, the next renewal reads the cell and learns the outcome.
    const written = this.#store.written(resource, token);
    return written === undefined ? this.#datum : written.datum;
  }

  write(datum: string): Promise<void> {
    const written = this.#last.then(() => this.#write(datum));
    this.#last = written.catch(() => undefined);
    return written;
  }

  release(): Promise<void> {
    return this.lease.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #write(datum: string): Promise<void> {
    const { lease } = this;
    const { resource, token } = lease;
    const bytes = new TextEncoder().encode(JSON.stringify(datum)).length;
    const { datumBytesMax, traits } = this.#store;
    if (bytes > datumBytesMax)
      throw new LeaseholdError(
        "STORE_FULL",
        `${traits.name} takes a datum of ${datumBytesMax} bytes, and this one has ${bytes}`,
      );
    lease.assertHeld();
    const offer = this.#store.offer(resource, token, datum);
    try {
      for (let renewals = 0; !offer.isWritten && renewals < renewalsMax; renewals += 1) await lease.renew();
    } catch (error) {
      // If the lease ends at this moment, a write that the store has acknowledged still counts.
      if (!offer.isWritten) throw error;
    } finally {
      this.#store.withdraw(resource, offer);
    }
    this.#datum = this.datum;
    if (!offer.isWritten)
      throw new LeaseholdError("NO_QUORUM", `the datum of ${JSON.stringify(resource)} was not written`);
  }
}

/** The leases of a farm with only this store, and their data. */
export class StoredCells implements GuardedCells {
  readonly leases: Leases;
  readonly #store: DatumStore;
  readonly #timers: Timers;

  constructor(leases: Leases, store: DatumStore, timers: Timers) {
    this.leases = leases;
    this.#store = store;
    this.#timers = timers;
  }

  get datumBytesMax(): number {
    return this.#store.datumBytesMax;
  }

  async acquire(resource: string, options?: AcquireOptions): Promise<GuardedLease> {
    checkResourceName(resource);
    const leave = this.#store.follow(resource);
    try {
      return new HeldCell(await this.leases.acquire(resource, options), this.#store, leave);
    } catch (error) {
      leave();
      throw error;
    }
  }

  async read(resource: string): Promise<GuardedDatum> {
    checkResourceName(resource);
    const answer = await this.#ask({ op: "read", register: datumRegister(resource) });
    if (answer.kind === "failed") throw answer.error;
    const [cell] = answer.kind === "cells" ? answer.cells : [];
    if (cell === undefined) return {};
    const { record, datum } = contentOf(cell);
    return { token: record.epoch, ...(datum !== undefined && { datum }) };
  }

  /** A store may never answer. */
  async #ask(request: StoreRequest): Promise<StoreAnswer> {
    const { name, delayMs } = this.#store.traits;
    const giveUp = new AbortController();
    const timer = this.#timers.after(delaysPerRead * delayMs, () => giveUp.abort());
    const silence = new Promise<StoreAnswer>((resolve) => {
      const error = new LeaseholdError("STORE_UNAVAILABLE", `${name}: it does not answer`);
      giveUp.signal.addEventListener("abort", () => resolve({ kind: "failed", error }));
    });
    try {
      return await Promise.race([this.#store.perform(request, giveUp), silence]);
    } finally {
      timer.cancel();
    }
  }

  close(): Promise<void> {
    return this.leases.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
