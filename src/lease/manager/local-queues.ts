import type { KeepAlive } from "../../common/keep-alive.js";
import type { Contender } from "./contender.js";
import type { LeaseholdError } from "../errors.js";
import type { HeldLease } from "./held-lease.js";
import { LocalQueue } from "./local-queue.js";

/**
 * The queues of one participant, one for each resource that somebody here wants or has. Only this makes and
 * drops them: a queue is handed out together with a place in it, and goes when the last of its users has
 * gone. So the queue that a user has is the one that others find under that name.
 */
export class LocalQueues {
  readonly #queues = new Map<string, LocalQueue>();
  readonly #keepAlive: KeepAlive | undefined;
  /** Called when the last queue has gone. */
  onNone: (() => void) | undefined;

  /** @param keepAlive is used as long as a caller here waits, or a lease is held */
  constructor(keepAlive: KeepAlive | undefined) {
    this.#keepAlive = keepAlive;
  }

  get size(): number {
    return this.#queues.size;
  }

  /**
   * Puts a caller into the queue of its resource, which it must leave.
   *
   * @throws LeaseholdError `TOO_MANY_WAITERS`
   */
  join(contender: Contender): void {
    let queue = this.#queues.get(contender.resource);
    if (queue === undefined) {
      queue = new LocalQueue(contender.resource, this.#unused);
      if (this.#queues.size === 0) this.#keepAlive?.ref();
      this.#queues.set(contender.resource, queue);
    }
    queue.join(contender);
  }

  /** The lease of this participant on the resource, until it has been given back. */
  leaseOn(resource: string): HeldLease | undefined {
    return this.#queues.get(resource)?.lease;
  }

  /** Every lease that has not been given back. */
  leases(): HeldLease[] {
    return [...this.#queues.values()].flatMap(({ lease }) => lease ?? []);
  }

  /** The lease has been given back. */
  vacate(lease: HeldLease): void {
    const queue = this.#queues.get(lease.resource);
    if (queue?.lease === lease) queue.vacate();
  }

  /** Nobody who waits wants anything any more. */
  giveUpAll(reason: LeaseholdError): void {
    for (const queue of this.#queues.values()) queue.giveUpAll(reason);
  }

  /** The resource may have become free. False when nobody waits for it. */
  hint(resource: string): boolean {
    return this.#queues.get(resource)?.hint() ?? false;
  }

  readonly #unused = ({ resource }: LocalQueue) => {
    this.#queues.delete(resource);
    if (this.#queues.size > 0) return;
    this.#keepAlive?.unref();
    this.onNone?.();
  };
}
