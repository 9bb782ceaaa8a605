import type { Hold, Observer, FleaseReport, Tenure, WorldView } from "../stage/observer.js";
import type { NodeView } from "../stage/node.js";

/**
 * I14: a tenure is one uninterrupted hold. Once a node's own clock has shown that its hold is over, the node
 * never holds by that token again. It never holds a lease that its program does not know about.
 */
export class Continuity implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;
  readonly #lapsed = new WeakSet<Tenure>();

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
  }

  looked(resource: string, holds: readonly Hold[], actor: NodeView | undefined): void {
    if (actor?.peer === undefined) return;
    const hold = holds.find(({ node }) => node === actor);
    const tenure = this.#view.tenures.of(actor, resource);
    if (hold?.valid !== true) {
      if (tenure !== undefined && hasShown(actor.peer, hold)) this.#lapsed.add(tenure);
    } else if (tenure === undefined || tenure.token !== hold.instance.tokenNumber) {
      this.#report("I14", `${actor.name} holds ${resource}, and its program was not told`);
    } else if (this.#lapsed.has(tenure)) {
      this.#report("I14", `${actor.name} holds ${resource} again by the lapsed token ${tenure.token}`);
    }
  }
}

/**
 * Whether the node can know that its hold is not valid. Clocks that disagree only while the node does not
 * read them end nothing: a node remembers only its readings.
 */
function hasShown(peer: NonNullable<NodeView["peer"]>, hold: Hold | undefined): boolean {
  return hold?.now.clocksDisagree !== true || peer.clock.disagreedByMs > 0;
}
