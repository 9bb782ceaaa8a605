import type { ContextSignal } from "./context-signal.js";
import type { LeaseholdError, LeaseLostError } from "../errors.js";

/** The parts of a held lease's state that leases share or that few leases need. */

export interface HeldLeaseOptions {
  readonly ttlMs: number;
  readonly autoRenew: boolean;
  /** `Infinity`: no bound. */
  readonly maxHoldMs: number;
  /** The provider renews the lease by itself; only the remaining time shows that. */
  readonly renewedElsewhere?: boolean;
}

/** Terms that a keeper's leases share, so that each lease needs only one reference. */
export interface LeaseTerms<Keeper> {
  readonly keeper: Keeper;
  readonly holder: string;
  readonly ttlMs: number;
  readonly autoRenew: boolean;
  readonly renewedElsewhere: boolean;
}

/** Returns shared terms for a keeper's leases: most programs acquire all leases with the same terms. */
export class CommonTerms<Keeper extends { readonly provider: { readonly holder: string } }> {
  readonly #keeper: Keeper;
  #last: LeaseTerms<Keeper> | undefined;

  constructor(keeper: Keeper) {
    this.#keeper = keeper;
  }

  of(options: HeldLeaseOptions): LeaseTerms<Keeper> {
    const { holder } = this.#keeper.provider;
    const { ttlMs, autoRenew, renewedElsewhere = false } = options;
    const last = this.#last;
    if (
      last?.holder === holder &&
      last.ttlMs === ttlMs &&
      last.autoRenew === autoRenew &&
      last.renewedElsewhere === renewedElsewhere
    )
      return last;
    this.#last = { keeper: this.#keeper, holder, ttlMs, autoRenew, renewedElsewhere };
    return this.#last;
  }
}

/** A renewal in flight. */
export class Renewal {
  /** The time of the request. */
  readonly sentMs: number;
  /** The delay of the request. */
  readonly lateMs: number;
  /** The remaining time of the lease at the request, ms; 0 if nobody listens. */
  readonly leftMs: number;
  #extended: boolean | undefined;
  #outcome: Promise<boolean> | undefined;
  #settle: ((extended: boolean) => void) | undefined;

  constructor(sentMs: number, lateMs: number, leftMs: number) {
    this.sentMs = sentMs;
    this.lateMs = lateMs;
    this.leftMs = leftMs;
  }

  /**
   * Resolves with true if the renewal has extended the lease; never rejects. Created on demand, as most
   * renewals are not awaited.
   */
  get outcome(): Promise<boolean> {
    this.#outcome ??=
      this.#extended === undefined
        ? new Promise((settle) => (this.#settle = settle))
        : Promise.resolve(this.#extended);
    return this.#outcome;
  }

  end(extended: boolean): void {
    this.#extended = extended;
    this.#settle?.(extended);
  }
}

/** The state that few leases need. */
export class RareState {
  /** The deadline that `maxHold` sets, on the steady clock. */
  latestMs = Infinity;
  isLate = false;
  /** Work runs under the lease, so `close` first asks the work to stop. */
  hasWork = false;
  /** The handle with which the lease can be attached. */
  handle: string | undefined;
  signal: ContextSignal | undefined;
  releaseRequests: ContextSignal | undefined;
  releaseRequest: LeaseholdError | undefined;
  /** Why the last renewal failed. */
  renewalError: unknown;
  /** Settles when the resource has been released. Absent if that happened synchronously. */
  returned: Promise<void> | undefined;
  /** The releases of leases that were acquired as intermediate steps; they never reject. */
  others: Promise<unknown> | undefined;
  /** Created on demand: an error captures the stack, which is too expensive for every release. */
  error: LeaseLostError | undefined;
}
