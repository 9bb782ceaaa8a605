import { watchAbort } from "../common/abort-watch.js";
import { relied } from "../common/clock-rates.js";
import type { Timer, World } from "../common/ports.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Place, Watching } from "../lease/provider.js";
import type { CallLimits, CoreClient, Entry, Granted } from "./core-client.js";
import type { Keys } from "./keys.js";

/** Bound of one participant's places: each costs the core a lease, its refreshes and a watch. */
const placesMax = 1_000;

/** Number of refreshes of a place during its lease. Each also reads the queue. */
const refreshesPerLease = 3;

/** Time limit for giving back a place, ms. Afterwards its lease expires. */
const leaveMsMax = 1_000;

export interface QueueParts {
  readonly core: CoreClient;
  readonly world: World;
  readonly keys: Keys;
  readonly clockRateError: number;
  /** The value of the keys, for humans. */
  readonly holder: string;
  drawLeaseId(): bigint;
  /** The TTL, in seconds, to request for a lease of `ttlMs`. */
  secondsOf(ttlMs: number): number;
}

/**
 * Queues of callers that wait in order. Each caller has a key, attached to a lease of its own. The keys'
 * create revisions are the order, as in a mutex of etcd. Each place watches only the one before it, so that a
 * release wakes one caller. A queue does not decide who holds: its first caller acquires like every other.
 */
export class FairQueues {
  readonly #parts: QueueParts;
  readonly #places = new Set<CorePlace>();
  readonly #leaving = new Set<Promise<void>>();

  constructor(parts: QueueParts) {
    this.#parts = parts;
  }

  /** @throws LeaseholdError `TOO_MANY_WAITERS`, or the core's refusal */
  async enter(resource: string, ttlMs: number, limits: CallLimits): Promise<Place> {
    if (this.#places.size >= placesMax) {
      const all = `this participant already has ${placesMax} places in queues`;
      throw new LeaseholdError("TOO_MANY_WAITERS", `${all}, the maximum`);
    }
    const { core, world, keys, holder } = this.#parts;
    const leaseId = this.#parts.drawLeaseId();
    const place = new CorePlace(this.#parts, keys.lineOf(resource), leaseId, () => this.#leave(place));
    this.#places.add(place);
    try {
      const begunMs = world.clock.monotonicMs();
      const granted = await core.grantLease(leaseId, this.#parts.secondsOf(ttlMs), limits);
      const { entry } = await core.create(place.key, JSON.stringify({ holder }), leaseId, limits);
      place.begin(entry, granted, begunMs);
      return place;
    } catch (error) {
      void place.leave();
      throw error;
    }
  }

  /** Resolves when all places have been removed, or left to expire. */
  async close(): Promise<void> {
    for (const place of this.#places) void place.leave();
    await Promise.all(this.#leaving);
  }

  #leave(place: CorePlace): Promise<void> {
    this.#places.delete(place);
    const { core } = this.#parts;
    const leaving = core.revokeLease(place.leaseId, { timeoutMs: leaveMsMax }).catch(() => undefined);
    this.#leaving.add(leaving);
    return leaving.finally(() => this.#leaving.delete(leaving));
  }
}

class CorePlace implements Place {
  readonly key: string;
  readonly leaseId: bigint;
  readonly first: Promise<void>;
  readonly #parts: QueueParts;
  readonly #queuePrefix: string;
  readonly #giveBack: () => Promise<void>;
  readonly #gone = new AbortController();
  #resolveFirst: () => void = () => undefined;
  #isFirst = false;
  #created = 0n;
  #leaseMs = 0;
  /** The core keeps the place until this reading of the steady clock, ms. */
  #endMs = 0;
  #timer: Timer | undefined;
  #before: Watching | undefined;
  #left: Promise<void> | undefined;

  constructor(parts: QueueParts, queuePrefix: string, leaseId: bigint, giveBack: () => Promise<void>) {
    this.#parts = parts;
    this.#queuePrefix = queuePrefix;
    this.leaseId = leaseId;
    this.key = `${queuePrefix}${leaseId}`;
    this.#giveBack = giveBack;
    this.first = new Promise((resolve, reject) => {
      this.#resolveFirst = resolve;
      watchAbort(this.#gone.signal, () => reject(this.#gone.signal.reason));
    });
    // The caller may leave before awaiting this promise.
    this.first.catch(() => undefined);
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  begin({ createRevision }: Entry, granted: Granted, begunMs: number): void {
    this.#created = createRevision;
    this.#extend(granted, begunMs);
    if (this.#left === undefined) void this.#turn();
  }

  leave(): Promise<void> {
    this.#left ??= this.#end();
    return this.#left;
  }

  #end(): Promise<void> {
    this.#timer?.cancel();
    this.#before?.stop();
    this.#gone.abort(
      new LeaseholdError("NO_QUORUM", "the place in the queue has expired, or was given back"),
    );
    return this.#giveBack();
  }

  #extend({ seconds }: Granted, begunMs: number): void {
    this.#leaseMs = relied(1_000 * seconds, this.#parts.clockRateError);
    this.#endMs = begunMs + this.#leaseMs;
  }

  /** Finds the place before this one, and sets the timer of the next refresh. */
  async #turn(): Promise<void> {
    const { timers } = this.#parts.world;
    this.#timer = timers.after(this.#leaseMs / refreshesPerLease, () => void this.#refresh());
    if (!this.#isFirst) await this.#orLater(() => this.#look());
  }

  async #refresh(): Promise<void> {
    const { core, world } = this.#parts;
    const begunMs = world.clock.monotonicMs();
    if (begunMs < this.#endMs) {
      await this.#orLater(async () => {
        const granted = await core.refreshLease(this.leaseId, this.#limits());
        if (granted.seconds <= 0) void this.leave();
        else this.#extend(granted, begunMs);
      });
    }
    if (this.#left !== undefined) return;
    if (world.clock.monotonicMs() >= this.#endMs) void this.leave();
    else await this.#turn();
  }

  async #look(): Promise<void> {
    const { core } = this.#parts;
    const { entries, revision } = await core.list(this.#queuePrefix, this.#limits());
    if (this.#left !== undefined) return;
    let own = false;
    let before: Entry | undefined;
    for (const entry of entries) {
      // A longer name may share this prefix.
      if (!/^\d+$/.test(entry.key.slice(this.#queuePrefix.length))) continue;
      if (entry.key === this.key) own = true;
      else if (entry.createRevision < this.#created && entry.createRevision > (before?.createRevision ?? 0n))
        before = entry;
    }
    this.#before?.stop();
    this.#before = undefined;
    if (!own) void this.leave();
    else if (before === undefined) {
      this.#isFirst = true;
      this.#resolveFirst();
    } else {
      const again = () => void this.#orLater(() => this.#look());
      this.#before = core.watch({ key: before.key, isPrefix: false }, revision + 1n, {
        deleted: again,
        missed: again,
        written: () => undefined,
      });
    }
  }

  /** Failed work is repeated at the next refresh. */
  async #orLater(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
    }
  }

  #limits(): CallLimits {
    return { timeoutMs: Math.max(1, this.#leaseMs / refreshesPerLease) };
  }
}
