import type { ContextSignal } from "./context-signal.js";
import type { LeaseholdError, LeaseLostError } from "../errors.js";

/** What a held lease keeps beside itself: what it has in common with others, and what few of them need. */

export interface HeldLeaseOptions {
  readonly ttlMs: number;
  readonly autoRenew: boolean;
  /** `Infinity` for no bound. */
  readonly maxHoldMs: number;
  /** The provider renews it by itself, which can be seen by what remains alone. */
  readonly renewedElsewhere?: boolean;
}

/** What leases have in common that one keeper grants in the same way: each has one reference to all of it. */
export interface LeaseTerms<Keeper> {
  readonly keeper: Keeper;
  readonly holder: string;
  readonly ttlMs: number;
  readonly autoRenew: boolean;
  readonly renewedElsewhere: boolean;
}

/** Hands out the terms of a keeper's leases. Most programs ask for all their leases in the same way. */
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

/** A renewal that is under way. */
export class Renewal {
  /** When it was asked for. */
  readonly sentMs: number;
  #extended: boolean | undefined;
  #outcome: Promise<boolean> | undefined;
  #settle: ((extended: boolean) => void) | undefined;

  constructor(sentMs: number) {
    this.sentMs = sentMs;
  }

  /** True when it has extended the lease; never rejects. Nobody asks of most renewals. */
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

/** What most leases never need. */
export class Rarity {
  /** The end that `maxHold` sets, on the steady clock. */
  latestMs = Infinity;
  isLate = false;
  /** Work runs under the lease that `close` asks to stop first. */
  hasWork = false;
  /** By which the lease can be attached. */
  handle: string | undefined;
  signal: ContextSignal | undefined;
  releaseRequests: ContextSignal | undefined;
  releaseRequest: LeaseholdError | undefined;
  /** Why the last renewal failed. */
  renewalError: unknown;
  /** Settles when the resource has been given back, where that takes a while. */
  returned: Promise<void> | undefined;
  /** Made when somebody asks for it: an error records the stack, which is too dear for every release. */
  error: LeaseLostError | undefined;
}
