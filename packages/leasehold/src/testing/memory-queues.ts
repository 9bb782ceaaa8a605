import { watchAbort } from "../common/abort-watch.js";
import { getOrInsert } from "../common/maps.js";
import type { Clock, Timer, Timers } from "../common/ports.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Place } from "../lease/provider.js";
import type { ProcessSwitch } from "./process-switch.js";

/** A place is renewed after this fraction of its ttl. */
const keptPerTtl = 3;

/** The process that owns a place. */
export interface PlaceOwner {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly process: ProcessSwitch;
}

/** The queues of a ground in memory, in which callers wait for a resource in order. */
export class MemoryQueues {
  readonly #queues = new Map<string, Set<MemoryPlace>>();

  enter(resource: string, owner: PlaceOwner, ttlMs: number): Place {
    const queue = getOrInsert(this.#queues, resource, () => new Set());
    const place: MemoryPlace = new MemoryPlace(owner, ttlMs, {
      isFirst: () => {
        for (const each of queue) {
          if (each === place) return true;
          if (!each.isOver) return false;
        }
        return false;
      },
      left: () => {
        queue.delete(place);
        if (queue.size === 0) this.#queues.delete(resource);
        for (const each of queue) each.look();
      },
    });
    queue.add(place);
    place.look();
    return place;
  }
}

interface Standing {
  isFirst(): boolean;
  left(): void;
}

class MemoryPlace implements Place {
  readonly first: Promise<void>;
  readonly #owner: PlaceOwner;
  readonly #ttlMs: number;
  readonly #standing: Standing;
  readonly #gone = new AbortController();
  #resolveFirst: () => void = () => undefined;
  #endMs: number;
  #timer: Timer;

  constructor(owner: PlaceOwner, ttlMs: number, standing: Standing) {
    this.#owner = owner;
    this.#ttlMs = ttlMs;
    this.#standing = standing;
    this.#endMs = owner.clock.monotonicMs() + ttlMs;
    this.first = new Promise((resolve, reject) => {
      this.#resolveFirst = resolve;
      watchAbort(this.gone, () => reject(this.gone.reason));
    });
    this.first.catch(() => undefined);
    this.#timer = this.#next();
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** For the others in the queue. */
  get isOver(): boolean {
    return this.gone.aborted || this.#owner.clock.monotonicMs() >= this.#endMs;
  }

  /** A place has left the queue. */
  look(): void {
    const { process } = this.#owner;
    process.run(() => {
      if (process.isConnected && !this.isOver && this.#standing.isFirst()) this.#resolveFirst();
    });
  }

  async leave(): Promise<void> {
    this.#timer.cancel();
    if (this.gone.aborted) return;
    this.#gone.abort(new LeaseholdError("NO_QUORUM", "the place in the queue has expired, or was left"));
    this.#standing.left();
  }

  #next(): Timer {
    return this.#owner.timers.after(this.#ttlMs / keptPerTtl, () => this.#keep());
  }

  #keep(): void {
    if (this.isOver) {
      void this.leave();
      return;
    }
    if (this.#owner.process.isConnected) this.#endMs = this.#owner.clock.monotonicMs() + this.#ttlMs;
    this.look();
    this.#timer = this.#next();
  }
}
