import { Kind, Refusal } from "../../../src/flease/protocol/message.js";
import type { AcceptorStep, Observer, FleaseReport } from "../stage/observer.js";
import { isGreedy } from "../stage/plan.js";

/** L1, where one client wants more than members keep: the others want little, so no member is ever full for them. */
export class Crowding implements Observer {
  readonly #report: FleaseReport;

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  handled({ node, request, reply }: AcceptorStep): void {
    if (reply?.kind !== Kind.nack || reply.refusal !== Refusal.full || isGreedy(request.resource)) return;
    this.#report("L1", `${node.name} is full of what ${reply.fullBy} has, for ${request.owner}`);
  }
}
