import { FleaseProvider } from "../provider.js";
import type { FleaseDriver } from "../provider.js";
import type { FleaseGrant } from "../grant.js";
import type { AttemptRequest, AttemptTaker, Grant } from "../../lease/provider.js";
import type { LeaseholdError } from "../../lease/errors.js";
import type { Guarantees } from "../../lease/types.js";
import { gridGuarantees } from "./guarantees.js";

/**
 * Share of the polling interval over which checks of a held resource are spread, so that waiters do not all
 * check at once.
 */
const pollSpread = 1 / 2;

/** The driver on stores. */
export interface StoresDriver extends FleaseDriver {
  /**
   * Repairs stores that do not count. Resolves to the reason why no lease can be acquired at all, if too many
   * don't.
   */
  tend(): Promise<LeaseholdError | undefined>;
  /** Publishes data of a tenure with its record from now on, as JSON. */
  carry(resource: string, data: string | undefined): void;
  /** Why no majority has answered. */
  whyNoQuorum(): LeaseholdError;
  /**
   * Resolves when a majority of the stores has executed the requests for this resource, or all have answered
   * or timed out.
   */
  settled(resource: string): Promise<void>;
}

/**
 * Leases on stores as a ground for the waist: overrides what differs because no member answers, hints or
 * confirms.
 */
export class StoresProvider extends FleaseProvider {
  override readonly guarantees: Guarantees;
  readonly #driver: StoresDriver;
  readonly #pollMs: number;

  constructor(driver: StoresDriver, pollMs: number) {
    super(driver);
    this.#driver = driver;
    this.#pollMs = pollMs;
    this.guarantees = gridGuarantees(driver.runner.peer.settings, pollMs);
  }

  override begin(request: AttemptRequest, taker: AttemptTaker): void {
    const { resource, data } = request;
    void this.#driver.tend().then((error) => {
      if (error !== undefined) {
        taker.settled({ kind: "failed", error });
        return;
      }
      this.#driver.carry(resource, data);
      super.begin(request, this.#listening(resource, taker));
    });
  }

  /** Reports the outcome of an attempt on stores to its caller. */
  #listening(resource: string, taker: AttemptTaker): AttemptTaker {
    const listening: AttemptTaker = {
      get cancelled() {
        return taker.cancelled;
      },
      onCancel: undefined,
      settled: (outcome) => {
        if (outcome.kind !== "granted") this.#driver.carry(resource, undefined);
        const isMute = outcome.kind === "failed" && outcome.error.code === "NO_QUORUM";
        taker.settled(isMute ? { kind: "failed", error: this.#driver.whyNoQuorum() } : outcome);
      },
    };
    taker.onCancel = () => listening.onCancel?.();
    return listening;
  }

  /**
   * After this process exits, no connection would complete the release: the release ends when it is written.
   */
  override async release(grant: Grant, isUnused = false): Promise<void> {
    super.release(grant, isUnused);
    this.#driver.carry(grant.resource, undefined);
    await this.#driver.settled(grant.resource);
  }

  /** Nobody notifies waiters of a release: they poll. */
  override refused(grant: FleaseGrant, holder: string, retryInMs: number): void {
    const pollMs = this.#pollMs * (1 - pollSpread * this.#driver.runner.world.random.next());
    super.refused(grant, holder, Math.min(retryInMs, pollMs));
  }
}
