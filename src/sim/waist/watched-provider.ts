import type { FleaseProvider } from "../../flease/provider.js";
import { Operation } from "../../flease/slot.js";
import type {
  AttemptOutcome,
  AttemptRequest,
  Cancellation,
  Grant,
  Inspection,
  Provider,
  ProviderEvents,
} from "../../lease/provider.js";
import type { Guarantees, HolderHint, ResourceHint } from "../../lease/types.js";
import type { SimNode } from "../node.js";
import type { World } from "../world.js";

/** Between the waist and its provider: notes what the one asks and the other tells, and changes nothing. */
export class WatchedProvider implements Provider {
  readonly #world: World;
  readonly #node: SimNode;
  readonly #inner: FleaseProvider;
  /** Resources of which a hint woke a waiter that has not had its answer yet. */
  readonly #hinted = new Set<string>();

  constructor(world: World, node: SimNode, inner: FleaseProvider) {
    this.#world = world;
    this.#node = node;
    this.#inner = inner;
  }

  get guarantees(): Guarantees {
    return this.#inner.guarantees;
  }

  get holder(): string {
    return this.#inner.holder;
  }

  get inspection(): Inspection {
    return this.#inner.inspection;
  }

  attach(events: ProviderEvents): void {
    this.#inner.attach({
      lost: (grant, error) => events.lost(grant, error),
      hint: (resource) => {
        const waited = events.hint(resource);
        if (waited) this.#hinted.add(resource);
        return waited;
      },
      releaseRequested: (request) => events.releaseRequested?.(request),
    });
  }

  async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    const { resource } = request;
    const left = this.#node.peer!.proposer.slotOf(resource);
    if (left?.operation === Operation.none) this.#closed(resource);
    const outcome = await this.#inner.attempt(request, cancellation);
    const hinted = this.#hinted.delete(resource);
    const { counters, observers } = this.#world;
    if (outcome.kind !== "granted") for (const closed of observers.closed) closed(this.#node, resource);
    else if (hinted) counters.waitsServedByHint += 1;
    if (cancellation?.cancelled === true) counters.cancellations += 1;
    return outcome;
  }

  async renew(grant: Grant, ttlMs: number): Promise<boolean> {
    const longer = await this.#inner.renew(grant, ttlMs);
    if (longer) this.#world.counters.automaticRenewals += 1;
    return longer;
  }

  release(grant: Grant): Promise<void> {
    this.#closed(grant.resource);
    this.#world.counters.releases += 1;
    return this.#inner.release(grant);
  }

  query(resource: string, timeoutMs: number): Promise<HolderHint> {
    return this.#inner.query(resource, timeoutMs);
  }

  list(prefix: string, timeoutMs: number, onIncomplete?: (why: string) => void): Promise<ResourceHint[]> {
    return this.#inner.list(prefix, timeoutMs, onIncomplete);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** From here on nothing is held by the ballots that were sent until now. */
  #closed(resource: string): void {
    this.#world.tenures.end(this.#node, resource, "released");
  }
}
