import type { DeadlineItem } from "../common/deadlines.js";
import type { LossReason } from "../lease/errors.js";
import type { Grant, RenewalTaker } from "../lease/provider.js";
import type { Instance } from "./protocol/instance.js";
import type { FleaseRunner } from "./runner.js";

type Clocked = Pick<FleaseRunner, "peer" | "now">;

/** There may be a million of them: what the proposer keeps of the tenure is not written down twice. */
export class FleaseGrant implements Grant {
  readonly instance: Instance;
  ended = false;
  lossReason: LossReason | undefined;
  renewal: RequestedRenewal | undefined;
  readonly #runner: Clocked;

  constructor(instance: Instance, runner: Clocked) {
    this.instance = instance;
    this.#runner = runner;
  }

  get resource(): string {
    return this.instance.resource;
  }

  get token(): bigint {
    return BigInt(this.instance.token);
  }

  remainingMs(): number {
    if (this.ended) return 0;
    return this.#runner.peer.proposer.remainingMs(this.instance, this.#runner.now());
  }
}

/** A renewal that was asked for and has not been told of yet. */
export class RequestedRenewal implements DeadlineItem {
  readonly grant: FleaseGrant;
  readonly taker: RenewalTaker;
  /** For how long it asks. */
  readonly ttlMs: number;
  extended = false;
  heapIndex = -1;

  constructor(grant: FleaseGrant, taker: RenewalTaker, ttlMs: number) {
    this.grant = grant;
    this.taker = taker;
    this.ttlMs = ttlMs;
  }
}
