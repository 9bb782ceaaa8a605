import type { ContextSignal } from "./context-signal.js";
import type { LeaseholdError, LeaseLostError } from "../errors.js";

/** The state of a held lease that is shared with others, or that few leases need. */

export interface HeldLeaseOptions {
  readonly ttlMs: number;
  readonly autoRenew: boolean;
  /** `Infinity` for no bound. */
  readonly maxHoldMs: number;
  /** The provider renews it by itself; only the remaining time shows it. */
  readonly renewedElsewhere?: boolean;
}

/** The terms that leases of one keeper share: each lease has one reference to all of them. */
export interface LeaseTerms<Keeper> {
  readonly keeper: Keeper;
  readonly holder: string;
  readonly ttlMs: number;
  readonly autoRenew: boolean;
  readonly renewedElsewhere: boolean;
}

/** Returns shared terms for a keeper's leases. Most programs acquire all their leases with the same terms. */
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
  /** When it was requested. */
  readonly sentMs: number;
  /** How late it was requested. */
  readonly lateMs: number;
  /** The rest of the lease then, ms; 0 if nobody listens. */
  readonly leftMs: number;
  #extended: boolean | undefined;
  #outcome: Promise<boolean> | undefined;
  #settle: ((extended: boolean) => void) | undefined;

  constructor(sentMs: number, lateMs: number, leftMs: number) {
    this.sentMs = sentMs;
    this.lateMs = lateMs;
    this.leftMs = leftMs;
  }

  /** True when it has extended the lease; never rejects. Created on demand: most renewals are not awaited. */
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

/** State that few leases need. */
export class RareState {
  /** The deadline that `maxHold` sets, on the steady clock. */
  latestMs = Infinity;
  isLate = false;
  /** Work runs under the lease, so `close` first asks it to stop. */
  hasWork = false;
  /** The handle with which the lease can be attached. */
  handle: string | undefined;
  signal: ContextSignal | undefined;
  releaseRequests: ContextSignal | undefined;
  releaseRequest: LeaseholdError | undefined;
  /** Why the last renewal failed. */
  renewalError: unknown;
  /** Settles when the resource has been released, unless that was synchronous. */
  returned: Promise<void> | undefined;
  /** The releases of other leases that were taken on the way; they never reject. */
  others: Promise<unknown> | undefined;
  /** Created on demand: an error captures the stack, which is too expensive for every release. */
  error: LeaseLostError | undefined;
}
