import type { Channel, ProgramHooks } from "../../common/ports.js";
import { LeaseholdError } from "../errors.js";
import type { LeaseEvents } from "../types.js";

/** Listeners of one event: more than these are a program that never takes one away. */
const listenersMax = 100;

type Listener<Event> = (event: Event) => void;

/** One kind of event, and who wants to hear of it. */
class Source<Event> {
  readonly #name: string;
  readonly #hooks: ProgramHooks | undefined;
  readonly #channel: Channel | undefined;
  readonly #listeners = new Set<{ readonly run: Listener<Event> }>();
  readonly #warn = (error: unknown) => this.#hooks?.warn(`a listener of "${this.#name}" has thrown`, error);

  constructor(name: keyof LeaseEvents, hooks: ProgramHooks | undefined) {
    this.#name = name;
    this.#hooks = hooks;
    this.#channel = hooks?.channel(`leasehold:${name}`);
  }

  /** Nobody makes an event that nobody hears. */
  get isHeard(): boolean {
    return this.#listeners.size > 0 || this.#channel?.hasSubscribers === true;
  }

  add(run: Listener<Event>): () => void {
    if (typeof run !== "function") throw new LeaseholdError("INVALID_CONFIG", "a listener is a function");
    if (this.#listeners.size >= listenersMax)
      throw new LeaseholdError("TOO_MANY_WAITERS", `${listenersMax} listeners hear of "${this.#name}"`);
    // Of its own, so that one that is added twice can be taken away once.
    const listener = { run };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  tell(event: Event): void {
    // Not those that a listener adds; and not those that one takes away.
    const listeners = [...this.#listeners];
    for (const listener of listeners) {
      if (!this.#listeners.has(listener)) continue;
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

/** What a participant tells of its own leases. */
export class Events {
  readonly acquired: Source<LeaseEvents["acquired"]>;
  readonly renewalLate: Source<LeaseEvents["renewal-late"]>;
  readonly lost: Source<LeaseEvents["lost"]>;
  readonly released: Source<LeaseEvents["released"]>;

  constructor(hooks: ProgramHooks | undefined) {
    this.acquired = new Source("acquired", hooks);
    this.renewalLate = new Source("renewal-late", hooks);
    this.lost = new Source("lost", hooks);
    this.released = new Source("released", hooks);
  }

  /** @throws LeaseholdError `INVALID_CONFIG` for an event that does not exist. */
  on<Name extends keyof LeaseEvents>(name: Name, listener: Listener<LeaseEvents[Name]>): () => void {
    const sources: { [Each in keyof LeaseEvents]: Source<LeaseEvents[Each]> } = {
      acquired: this.acquired,
      "renewal-late": this.renewalLate,
      lost: this.lost,
      released: this.released,
    };
    if (Object.hasOwn(sources, name)) return sources[name].add(listener);
    const known = Object.keys(sources).join(", ");
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `there is no event ${JSON.stringify(name)}; there are ${known}`,
    );
  }
}
