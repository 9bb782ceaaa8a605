import { Kind, LeaseState, Refusal } from "../../src/flease/protocol/message.js";
import type { AcceptorStep, Observer, Tenure } from "./observer.js";

/** What happened in a run, or in many: a batch in which the interesting things did not happen proves nothing (V). */
export class Counters {
  runs = 0;
  events = 0;
  tenures = 0;
  fastWins = 0;
  fastLosses = 0;
  oneTripRenewals = 0;
  twoPhaseRenewals = 0;
  failedRenewals = 0;
  releases = 0;
  lapses = 0;
  cancellations = 0;
  takeoversAfterCrash = 0;
  takeoversAfterLapse = 0;
  /** Two-phase acquisitions of a lease that was released and would not be over yet. */
  takeoversOfReleased = 0;
  lateDecisions = 0;
  floorRefusals = 0;
  heldRefusals = 0;
  promiseRefusals = 0;
  staleRefusals = 0;
  boundRefusals = 0;
  /** To a client that wants more than members keep. */
  fullRefusals = 0;
  crashes = 0;
  rejoins = 0;
  pauses = 0;
  suspensions = 0;
  slews = 0;
  clockAlarms = 0;
  impossibleClocks = 0;
  /** From a release to the next tenure of the same resource. */
  handOvers = 0;
  handOverMs = 0;
  // Of the programs on the waist
  automaticRenewals = 0;
  waitsServedByHint = 0;
  /** From one caller to the next in one process. */
  localHandOvers = 0;
  electionsWon = 0;
  electionsLost = 0;
  breaks = 0;
  requestsFollowed = 0;
  queriesAnswered = 0;
  changesSeen = 0;
  clientArrivals = 0;
  clientDepartures = 0;

  add(other: Counters): void {
    for (const name of Object.keys(this) as CounterName[]) this[name] += other[name];
  }
}

export type CounterName = Exclude<keyof Counters, "add">;

/** Counts what can be seen from outside the nodes; the rest they count themselves. */
export class Counting implements Observer {
  readonly #counters: Counters;

  constructor(counters: Counters) {
    this.#counters = counters;
  }

  handled(step: AcceptorStep): void {
    const { reply } = step;
    if (reply?.kind !== Kind.nack) return;
    const counters = this.#counters;
    if (reply.refusal === Refusal.held) counters.heldRefusals += 1;
    else if (reply.refusal === Refusal.stale) counters.staleRefusals += 1;
    else if (reply.refusal === Refusal.outOfBounds) counters.boundRefusals += 1;
    else if (reply.refusal === Refusal.full) counters.fullRefusals += 1;
    else if (reply.refusal === Refusal.promised) {
      counters.promiseRefusals += 1;
      const onFloor = reply.promised === step.node.peer?.acceptor?.floor;
      if (onFloor && reply.leaseState === LeaseState.none) counters.floorRefusals += 1;
    }
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
