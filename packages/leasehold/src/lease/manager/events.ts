import type { Channel, ProgramHooks } from "../../common/ports.js";
import { LeaseholdError } from "../errors.js";
import type { LeaseEvents } from "../types.js";

/** The maximum number of listeners of one event: a program with more probably forgets to remove them. */
const listenersMax = 100;

type Listener<Event> = (event: Event) => void;

/** One kind of event, and its listeners. */
class Source<Event> {
  readonly #name: string;
  readonly #hooks: ProgramHooks | undefined;
  readonly #channel: Channel | undefined;
  /** Replaced at each change, so that `emit` can iterate over a stable list without copying it. */
  #listeners: readonly { readonly run: Listener<Event> }[] = [];
  readonly #warn = (error: unknown) => this.#hooks?.warn(`a listener of "${this.#name}" threw`, error);

  constructor(name: keyof LeaseEvents, hooks: ProgramHooks | undefined) {
    this.#name = name;
    this.#hooks = hooks;
    this.#channel = hooks?.channel(`leasehold:${name}`);
  }

  /** Whether there is a listener. Without one, callers don't create the event. */
  get hasListeners(): boolean {
    return this.#listeners.length > 0 || this.#channel?.hasSubscribers === true;
  }

  add(run: Listener<Event>): () => void {
    if (typeof run !== "function")
      throw new LeaseholdError("INVALID_CONFIG", "the listener must be a function");
    if (this.#listeners.length >= listenersMax)
      throw new LeaseholdError("TOO_MANY_WAITERS", `"${this.#name}" already has ${listenersMax} listeners`);
    // A separate object, so that a function that was added twice can be removed once.
    const listener = { run };
    this.#listeners = [...this.#listeners, listener];
    return () => void (this.#listeners = this.#listeners.filter((each) => each !== listener));
  }

  emit(event: Event): void {
    // Listeners that are added or removed during this loop are not called.
    const listeners = this.#listeners;
    for (const listener of listeners) {
      if (this.#listeners !== listeners && !this.#listeners.includes(listener)) continue;
      try {
        const settled: unknown = listener.run(event);
        if (settled instanceof Promise) settled.catch(this.#warn);
      } catch (error) {
        this.#warn(error);
      }
    }
    if (this.#channel?.hasSubscribers === true) this.#channel.publish(event);
  }
}

/** The events of a participant's own leases. */
export class Events {
  readonly asked: Source<LeaseEvents["asked"]>;
  readonly settled: Source<LeaseEvents["settled"]>;
  readonly acquired: Source<LeaseEvents["acquired"]>;
  readonly renewed: Source<LeaseEvents["renewed"]>;
  readonly renewalLate: Source<LeaseEvents["renewal-late"]>;
  readonly lost: Source<LeaseEvents["lost"]>;
  readonly released: Source<LeaseEvents["released"]>;

  constructor(hooks: ProgramHooks | undefined) {
    this.asked = new Source("asked", hooks);
    this.settled = new Source("settled", hooks);
    this.acquired = new Source("acquired", hooks);
    this.renewed = new Source("renewed", hooks);
    this.renewalLate = new Source("renewal-late", hooks);
    this.lost = new Source("lost", hooks);
    this.released = new Source("released", hooks);
  }

  /** @throws LeaseholdError `INVALID_CONFIG` for an unknown event */
  on<Name extends keyof LeaseEvents>(name: Name, listener: Listener<LeaseEvents[Name]>): () => void {
    const sources: { [Each in keyof LeaseEvents]: Source<LeaseEvents[Each]> } = {
      asked: this.asked,
      settled: this.settled,
      acquired: this.acquired,
      renewed: this.renewed,
      "renewal-late": this.renewalLate,
      lost: this.lost,
      released: this.released,
    };
    if (Object.hasOwn(sources, name)) return sources[name].add(listener);
    const known = Object.keys(sources).join(", ");
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `there is no event ${JSON.stringify(name)}; the events are ${known}`,
    );
  }
}
