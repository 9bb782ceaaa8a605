import type { DeadlineItem } from "../common/deadlines.js";
import type { LossReason } from "../lease/errors.js";
import type { AttemptOutcome, AttemptTaker, Grant, RenewalTaker } from "../lease/provider.js";
import { Instance } from "./protocol/instance.js";
import type { HoldNumbers } from "./protocol/instance.js";
import type { Cell } from "./protocol/quorum.js";
import type { FleaseRunner } from "./runner.js";

type Clocked = Pick<FleaseRunner, "peer" | "now">;

/**
 * A tenure for the lease layer. It is the proposer's instance itself: there may be a million of them, and two
 * objects each would take a tenth more memory.
 */
export class FleaseGrant extends Instance implements Grant {
  lossReason: LossReason | undefined;
  /** The attempt in progress, or later a renewal. */
  request: PendingAttempt | RequestedRenewal | undefined;
  readonly #runner: Clocked;

  constructor(index: number, resource: string, cell: Cell, page: HoldNumbers, runner: Clocked) {
    super(index, resource, cell, page);
    this.#runner = runner;
  }

  /** Returns the object behind a grant of the waist or an instance of the proposer. */
  static of(made: Grant | Instance): FleaseGrant {
    if (made instanceof FleaseGrant) return made;
    throw new Error("assertion failed: this grant is of another provider");
  }

  get token(): bigint {
    return BigInt(this.tokenNumber);
  }

  get renewal(): RequestedRenewal | undefined {
    return this.request instanceof RequestedRenewal ? this.request : undefined;
  }

  remainingMs(): number {
    if (!this.holding) return 0;
    return this.#runner.peer.proposer.remainingMs(this, this.#runner.now());
  }
}

/** An attempt whose taker has not received its outcome yet. */
export class PendingAttempt {
  readonly taker: AttemptTaker;
  /** Public data of the tenure. */
  readonly data: string | undefined;
  outcome: AttemptOutcome | undefined;

  constructor(taker: AttemptTaker, data: string | undefined) {
    this.taker = taker;
    this.data = data;
  }
}

/** A requested renewal that has no outcome yet. */
export class RequestedRenewal implements DeadlineItem {
  readonly grant: FleaseGrant;
  readonly taker: RenewalTaker;
  /** Requested lease time, ms. */
  readonly ttlMs: number;
  extended = false;
  heapIndex = -1;

  constructor(grant: FleaseGrant, taker: RenewalTaker, ttlMs: number) {
    this.grant = grant;
    this.taker = taker;
    this.ttlMs = ttlMs;
  }
}
