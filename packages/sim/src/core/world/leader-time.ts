import type { PeerMessage } from "@leasehold/core/inner/replica/types.js";
import type { CoreCounters } from "./counters.js";
import type { CoreReport } from "./invariants.js";
import type { SimServer } from "./server.js";

/** Longer than anybody waits for a transfer of leadership. */
const lateWordMs = 1_500;

/** Now and then the one that shall lead hears of it when nobody expects that any more. No draw. */
export function lateMsOf(message: PeerMessage): number {
  return message.kind === "timeout-now" && message.term % 2 === 0 ? lateWordMs : 0;
}

/** Who is certain by the clock that nobody else leads is right. */
export class LeaderTime {
  readonly #report: CoreReport;
  readonly #counters: CoreCounters;
  /** The newest that anybody has led in. */
  #ledTerm = 0;

  constructor(report: CoreReport, counters: CoreCounters) {
    this.#report = report;
    this.#counters = counters;
  }

  leads(server: SimServer): void {
    this.#ledTerm = Math.max(this.#ledTerm, server.replica!.status().term);
  }

  /** Another core, whose terms begin anew. */
  beginAnew(): void {
    this.#ledTerm = 0;
  }

  /** A turn that it ends after it stood still it began before: that is as if its answers were late on their way. */
  check({ id, knowsTime, replica }: SimServer): void {
    if (!knowsTime || !replica!.leadsByClock) return;
    this.#counters.ledByClock += 1;
    const { term } = replica!.status();
    if (term < this.#ledTerm)
      this.#report("refresh", `${id} counts on its time in term ${term}, and ${this.#ledTerm} is led`);
  }
}
