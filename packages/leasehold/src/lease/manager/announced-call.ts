import type { Clock } from "../../common/ports.js";
import { LeaseholdError } from "../errors.js";
import type { AnnouncedCall } from "../queue/contender.js";
import type { SettledOutcome } from "../types.js";
import type { Events } from "./events.js";

/**
 * The events of one call for a lease. It doesn't wrap the call's promise in another one, which would cost as
 * much as everything that is counted.
 */
class Call implements AnnouncedCall {
  readonly startedMs: number;
  readonly #resource: string;
  readonly #settled: Events["settled"];
  readonly #clock: Clock;

  constructor(resource: string, settled: Events["settled"], clock: Clock) {
    this.startedMs = clock.monotonicMs();
    this.#resource = resource;
    this.#settled = settled;
    this.#clock = clock;
  }

  served(lease: object | undefined): void {
    this.#emit(lease === undefined ? "held" : "acquired");
  }

  failed(error: unknown): void {
    this.#emit(outcomeOf(error));
  }

  #emit(outcome: SettledOutcome): void {
    const waitedMs = this.#clock.monotonicMs() - this.startedMs;
    this.#settled.emit({ resource: this.#resource, outcome, waitedMs });
  }
}

/** Announces a call; `undefined` if nobody listens. The caller reports the end. */
export function announce(
  resource: string,
  { asked, settled }: Events,
  clock: Clock,
): AnnouncedCall | undefined {
  if (!asked.hasListeners && !settled.hasListeners) return undefined;
  const call = new Call(resource, settled, clock);
  asked.emit({ resource });
  return call;
}

export function outcomeOf(error: unknown): SettledOutcome {
  if (!(error instanceof LeaseholdError)) return "aborted";
  return error.code === "LEASE_HELD" ? "held" : error.code;
}
