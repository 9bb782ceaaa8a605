import { Kind } from "leasehold/inner/flease/protocol/message.js";
import type { AcceptorStep, Observer, FleaseReport, WorldView } from "../stage/observer.js";

/**
 * I10: no acceptor accepts a lease that is longer than the longest allowed, or that ends later than a lease
 * granted now could.
 */
export class BoundedLeases implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
  }

  handled({ node, request, reply }: AcceptorStep): void {
    if (reply?.kind !== Kind.ack) return;
    const { ttlMaxMs, maxClockSkewMs } = this.#view.settings;
    const { until, duration, resource } = request;
    const { wall } = node.look();
    if (duration > ttlMaxMs || until > wall + maxClockSkewMs + ttlMaxMs)
      this.#report("I10", `${node.name} takes a lease of ${resource} for ${duration} ms, until ${until}`);
  }
}
