import type { FleaseProvider } from "leasehold/inner/flease/provider.js";
import { OperationKind } from "leasehold/inner/flease/protocol/instance.js";
import type {
  AttemptOutcome,
  AttemptRequest,
  Cancellation,
  Grant,
  Inspection,
  Provider,
  ProviderEvents,
} from "leasehold/inner/lease/provider.js";
import type { Guarantees, HolderHint, ResourceHint } from "leasehold/inner/lease/types.js";
import type { ProgramNode } from "../stage/node.js";
import type { WaistRequest } from "../stage/observer.js";
import type { Stage } from "../stage/stage.js";

/** Other providers answer some turns of promises later than this one, at most. */
const answerTurnsMax = 16;

/** Records the requests of the lease layer and the answers of its provider, and changes nothing. */
export class WatchedProvider implements Provider {
  readonly #world: Stage;
  readonly #node: ProgramNode;
  readonly #inner: FleaseProvider;
  readonly #life: string;
  /** Resources with a waiter that a hint woke and that has no answer yet. */
  readonly #hinted = new Set<string>();

  constructor(world: Stage, node: ProgramNode, inner: FleaseProvider) {
    this.#world = world;
    this.#node = node;
    this.#inner = inner;
    this.#life = `${node.name}.${node.incarnation}`;
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
    this.#asks(resource, "attempt");
    const left = this.#node.peer!.proposer.instanceOf(resource);
    if (left?.operation.kind === OperationKind.none) this.#closed(resource);
    const outcome = await this.#inner.attempt(request, cancellation);
    this.#answered(resource, outcome.kind === "granted");
    if (this.#world.plan.waist.jobsEach > 0) await this.#world.pass(answerTurnsMax);
    const hinted = this.#hinted.delete(resource);
    const { counters, observers } = this.#world;
    if (outcome.kind !== "granted") for (const closed of observers.closed) closed(this.#node, resource);
    else if (hinted) counters.waitsServedByHint += 1;
    if (cancellation?.cancelled === true) counters.cancellations += 1;
    return outcome;
  }

  async renew(grant: Grant, ttlMs: number): Promise<boolean> {
    this.#asks(grant.resource, "renew");
    const longer = await this.#inner.renew(grant, ttlMs);
    this.#answered(grant.resource, true);
    if (longer) this.#world.counters.automaticRenewals += 1;
    return longer;
  }

  forgoRenewal(grant: Grant): void {
    this.#inner.forgoRenewal?.(grant);
  }

  async release(grant: Grant): Promise<void> {
    this.#asks(grant.resource, "release");
    this.#closed(grant.resource);
    this.#world.counters.releases += 1;
    await this.#inner.release(grant);
    this.#answered(grant.resource, false);
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

  #asks(resource: string, request: WaistRequest): void {
    for (const asks of this.#world.observers.asks) asks(this.#life, resource, request);
  }

  #answered(resource: string, granted: boolean): void {
    for (const answered of this.#world.observers.answered) answered(this.#life, resource, granted);
  }

  /** From here on no hold rests on earlier ballots. */
  #closed(resource: string): void {
    this.#world.tenures.end(this.#node, resource, "released");
  }
}
