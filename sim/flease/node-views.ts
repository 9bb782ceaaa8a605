import { firstView, votersOf } from "../../src/flease/protocol/views.js";
import type { KeptView } from "../../src/flease/protocol/views.js";
import type { PeerViews } from "../../src/flease/peer.js";
import type { Packet } from "./stage/network.js";
import type { NodeView } from "./stage/node.js";
import type { Stage } from "./stage/stage.js";

/** A node's part in changes of the members: what a member keeps over a crash, and what packets tell. */
export class NodeViews {
  readonly #world: Stage;
  readonly #node: NodeView;
  #kept: KeptView | undefined;
  #stamp = 0;

  constructor(world: Stage, node: NodeView) {
    this.#world = world;
    this.#node = node;
  }

  /** For the peer that starts; undefined where the members stay. */
  port(): PeerViews | undefined {
    const { views, settings } = this.#world.plan;
    if (views === undefined) return undefined;
    const { isMember, name } = this.#node;
    this.#kept ??= { view: { ...firstView(settings), ...views.first }, barrier: 0 };
    const keep = (kept: KeptView) => {
      if (isMember) this.#kept = kept;
      return true;
    };
    return { id: isMember ? name : "", kept: this.#kept, keep };
  }

  started(): void {
    this.#stamp = this.#node.peer!.views.view.stamp;
  }

  /** Looks whether the node has entered another view. */
  look(): void {
    const { view } = this.#node.peer!.views;
    if (view.stamp === this.#stamp) return;
    this.#stamp = view.stamp;
    const kind = view.before === undefined ? "view" : "joint view";
    this.#world.story?.(`${this.#node.name} is in ${kind} ${view.number} of ${votersOf(view).join(" ")}`);
    for (const viewEntered of this.#world.observers.viewEntered) viewEntered(this.#node);
  }

  /** Some packets tell the view of their sender, and heartbeats do. */
  tell(packet: Packet): void {
    const { plan, random } = this.#world;
    if (plan.views === undefined) return;
    if (packet.message === undefined || random.chance(plan.views.noteRate))
      packet.view = this.#node.peer!.views.note();
  }
}
