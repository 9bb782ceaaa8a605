import type { PeerMessage } from "@leasehold/core/inner/replica/types.js";
import type { CoreCounters } from "./counters.js";
import type { CoreReport } from "./invariants.js";
import type { SimServer } from "./server.js";

/** Longer than anyone waits for a transfer of leadership. */
const lateWordMs = 1_500;

/** Now and then delays a transfer until nobody expects it any more. Draws no random number. */
export function lateMsOf(message: PeerMessage): number {
  return message.kind === "timeout-now" && message.term % 2 === 0 ? lateWordMs : 0;
}

/** A leader that relies on its clock is the only one. */
export class LeaderTime {
  readonly #report: CoreReport;
  readonly #counters: CoreCounters;
  /** The newest term with a leader. */
  #ledTerm = 0;

  constructor(report: CoreReport, counters: CoreCounters) {
    this.#report = report;
    this.#counters = counters;
  }

  leads(server: SimServer): void {
    this.#ledTerm = Math.max(this.#ledTerm, server.replica!.status().term);
  }

  /** The world has another core, whose terms begin again. */
  beginAnew(): void {
    this.#ledTerm = 0;
  }

  /** If a turn ends after a pause, it began before the pause; its answers were only delayed. */
  check({ id, knowsTime, replica }: SimServer): void {
    if (!knowsTime || !replica!.leadsByClock) return;
    this.#counters.ledByClock += 1;
    const { term } = replica!.status();
    if (term < this.#ledTerm)
      this.#report("refresh", `${id} counts on its time in term ${term}, and ${this.#ledTerm} is led`);
  }
}
