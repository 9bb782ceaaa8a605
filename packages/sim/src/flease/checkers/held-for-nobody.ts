import { OperationKind } from "leasehold/inner/flease/protocol/instance.js";
import type { NodeView } from "../stage/node.js";
import { isOfForms } from "../waist/sharer.js";
import type { Hold, Observer, FleaseReport, WorldView } from "../stage/observer.js";

/**
 * L1: between two events every hold of a node with programs on the lease layer belongs to some program. A
 * grant to a caller that had given up, or a release that was not passed on, would block others for nothing.
 */
export class HeldForNobody implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
  }

  looked(resource: string, holds: readonly Hold[], actor: NodeView | undefined): void {
    if (actor !== undefined) return; // In the middle of an event.
    for (const { node, instance, valid } of holds) {
      // A release waits for a renewal in flight.
      if (node.waist === undefined || !valid || instance.operation.kind !== OperationKind.none) continue;
      if (isOfForms(resource)) continue;
      if (!this.#view.claims.has(node, resource))
        this.#report("L1", `${node.name} holds ${resource}, and no program of it does`);
    }
  }
}
