import { FleaseProvider } from "../provider.js";
import type { Slot } from "../protocol/slot.js";
import type { AttemptOutcome, AttemptRequest, Cancellation, Grant } from "../../lease/provider.js";
import type { Guarantees } from "../../lease/types.js";
import type { GridNode } from "./grid-node.js";
import { gridGuarantees } from "./guarantees.js";

/** Looks at a held resource are spread over this part of the polling interval, so that those who wait do not all come at once. */
const pollSpread = 1 / 2;

/** Leases on stores, as a ground for the waist: what is different where there is no member that could answer, hint or confirm. */
export class GridProvider extends FleaseProvider {
  override readonly guarantees: Guarantees;
  readonly #node: GridNode;
  readonly #pollMs: number;

  constructor(node: GridNode, pollMs: number) {
    super(node);
    this.#node = node;
    this.#pollMs = pollMs;
    this.guarantees = gridGuarantees(node.peer.settings, pollMs);
  }

  override async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    const error = await this.#node.tend();
    if (error !== undefined) return { kind: "unanswered", error };
    const outcome = await super.attempt(request, cancellation);
    if (outcome.kind !== "unanswered" || outcome.error.code !== "NO_QUORUM") return outcome;
    return { kind: "unanswered", error: this.#node.whyNoQuorum() };
  }

  /** There is no connection that would carry the release on after this process has gone: it ends when it is written. */
  override async release(grant: Grant): Promise<void> {
    await super.release(grant);
    await this.#node.settled(grant.resource);
  }

  /** Nobody tells of a release: whoever waits looks again. */
  override refused(slot: Slot, holder: string, retryInMs: number): void {
    const pollMs = this.#pollMs * (1 - pollSpread * this.#node.random.next());
    super.refused(slot, holder, Math.min(retryInMs, pollMs));
  }
}
