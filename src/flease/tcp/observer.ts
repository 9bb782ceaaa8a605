import { LeaseholdError } from "../../lease/errors.js";
import type { AttemptOutcome, Grant, Inspection, Provider, ProviderEvents } from "../../lease/provider.js";
import type { Guarantees, HolderHint, ResourceHint } from "../../lease/types.js";

/**
 * What an observer makes of a ground: it asks, and takes nothing. Members refuse an observer's requests
 * anyway; this says so at once, where the mistake is.
 */
export class ObserverProvider implements Provider {
  readonly #ground: Provider;

  constructor(ground: Provider) {
    this.#ground = ground;
  }

  get guarantees(): Guarantees {
    return this.#ground.guarantees;
  }

  get holder(): string {
    return this.#ground.holder;
  }

  attach(events: ProviderEvents): void {
    this.#ground.attach(events);
  }

  attempt(): Promise<AttemptOutcome> {
    const error = new LeaseholdError(
      "PERMISSION_DENIED",
      "an observer takes no leases: open with the role of a client",
    );
    return Promise.resolve({ kind: "unanswered", error });
  }

  renew(_grant: Grant): Promise<boolean> {
    return Promise.resolve(false);
  }

  release(_grant: Grant): Promise<void> {
    return Promise.resolve();
  }

  query(resource: string, timeoutMs: number): Promise<HolderHint> {
    return this.#ground.query(resource, timeoutMs);
  }

  /** Members refuse an observer that wants to break a lease, or to have one released. */
  get inspection(): Inspection | undefined {
    return this.#ground.inspection;
  }

  list(prefix: string, timeoutMs: number, onIncomplete?: (why: string) => void): Promise<ResourceHint[]> {
    return this.#ground.list(prefix, timeoutMs, onIncomplete);
  }

  close(): Promise<void> {
    return this.#ground.close();
  }
}
