import type { KeepAlive } from "../../common/keep-alive.js";
import type { Contender, OwnLease, Wanted } from "./contender.js";
import type { LeaseholdError } from "../errors.js";
import { LocalQueue } from "./local-queue.js";

/**
 * The queues of one participant, one for each resource that a caller here wants or has. Only this class makes
 * and drops them: a queue is handed out together with a place in it, and is dropped when the last of its
 * users has left. So a user's queue is always the one registered under that name. A lease without waiters is
 * stored here without a queue.
 */
export class LocalQueues<Lease extends OwnLease> {
  readonly #queues = new Map<string, LocalQueue<Lease> | Lease>();
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
   * Adds a caller to the queue of its resource; the caller must leave it.
   *
   * @throws LeaseholdError `TOO_MANY_WAITERS`
   */
  join(contender: Contender<Wanted, Lease>): void {
    const { resource } = contender;
    let queue = this.#queues.get(resource);
    if (!(queue instanceof LocalQueue)) {
      queue = new LocalQueue(resource, queue, this.#unused);
      if (this.#queues.size === 0) this.#keepAlive?.ref();
      this.#queues.set(resource, queue);
    }
    queue.join(contender);
  }

  /** The lease of this participant on the resource, until it has been released. */
  leaseOn(resource: string): Lease | undefined {
    const found = this.#queues.get(resource);
    return found instanceof LocalQueue ? found.lease : found;
  }

  /** Every lease that has not been released. */
  leases(): Lease[] {
    return [...this.#queues.values()].flatMap(
      (each) => (each instanceof LocalQueue ? each.lease : each) ?? [],
    );
  }

  /** The lease has been released. */
  vacate(lease: Lease): void {
    const found = this.#queues.get(lease.resource);
    if (found === lease) this.#drop(lease.resource);
    else if (found instanceof LocalQueue && found.lease === lease) found.vacate();
  }

  /** Makes all waiting callers give up. */
  giveUpAll(reason: LeaseholdError): void {
    for (const each of this.#queues.values()) if (each instanceof LocalQueue) each.giveUpAll(reason);
  }

  /** The resource may have become free. False when nobody waits for it. */
  hint(resource: string): boolean {
    const found = this.#queues.get(resource);
    return found instanceof LocalQueue && found.hint();
  }

  readonly #unused = ({ resource, lease }: LocalQueue<Lease>) => {
    if (lease === undefined) this.#drop(resource);
    else this.#queues.set(resource, lease);
  };

  #drop(resource: string): void {
    this.#queues.delete(resource);
    if (this.#queues.size > 0) return;
    this.#keepAlive?.unref();
    this.onNone?.();
  }
}
