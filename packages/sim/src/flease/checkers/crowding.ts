import { Kind, Refusal } from "leasehold/inner/flease/protocol/message.js";
import type { AcceptorStep, Observer, FleaseReport } from "../stage/observer.js";
import { isGreedy } from "../stage/plan.js";

/**
 * L1, where one client wants more names than members keep: a member is never full for another client that has
 * nothing there. An account that already has resources shares the free ones, and counted leases may need more
 * slots than are free.
 */
export class Crowding implements Observer {
  readonly #report: FleaseReport;

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  handled({ node, request, reply }: AcceptorStep): void {
    if (reply?.kind !== Kind.nack || reply.refusal !== Refusal.full || isGreedy(request.resource)) return;
    const { quotas } = node.peer?.acceptor ?? {};
    if (quotas !== undefined && quotas.payerOf(request.owner).used > 0) return;
    this.#report("L1", `${node.name} is full of what ${reply.fullBy} has, for ${request.owner}`);
  }
}
