import { Kind, LeaseState, Refusal } from "leasehold/inner/flease/protocol/message.js";
import type { NodeView } from "./stage/node.js";
import type { FleaseCounters } from "./stage/counters.js";
import type { AcceptorStep, Observer, Tenure } from "./stage/observer.js";

/** Counts events that are visible from outside the nodes; nodes count the rest. */
export class Counting implements Observer {
  readonly #counters: FleaseCounters;
  #newestView = 1;

  constructor(counters: FleaseCounters) {
    this.#counters = counters;
  }

  handled(step: AcceptorStep): void {
    const { reply } = step;
    if (reply?.kind !== Kind.nack) return;
    const counters = this.#counters;
    if (reply.refusal === Refusal.held) counters.heldRefusals += 1;
    else if (reply.refusal === Refusal.stale) counters.staleRefusals += 1;
    else if (reply.refusal === Refusal.outOfBounds) counters.boundRefusals += 1;
    else if (reply.refusal === Refusal.otherView) counters.viewRefusals += 1;
    else if (reply.refusal === Refusal.full) counters.fullRefusals += 1;
    else if (reply.refusal === Refusal.promised) {
      counters.promiseRefusals += 1;
      const onFloor = reply.promised === step.node.peer?.acceptor?.floor;
      if (onFloor && reply.leaseState === LeaseState.none) counters.floorRefusals += 1;
    }
  }

  viewEntered(node: NodeView): void {
    const { number, before } = node.peer!.views.view;
    if (number <= this.#newestView) return;
    this.#newestView = number;
    if (before === undefined) this.#counters.changesEnded += 1;
    else this.#counters.changesBegun += 1;
  }

  tenureBegan(tenure: Tenure, earlier: Tenure | undefined): void {
    const counters = this.#counters;
    counters.tenures += 1;
    if (tenure.fast) counters.fastWins += 1;
    if (earlier?.ended === "crashed") counters.takeoversAfterCrash += 1;
    if (earlier?.ended === "lapsed") counters.takeoversAfterLapse += 1;
    if (earlier?.ended !== "released") return;
    counters.handOvers += 1;
    counters.handOverMs += tenure.beganMs - earlier.endedMs;
    const stillRunning = earlier.until > tenure.node.look().wall;
    if (!tenure.fast && stillRunning && earlier.node !== tenure.node) counters.takeoversOfReleased += 1;
  }
}
