import {
  firstView,
  stampMax,
  viewAtFirstStart,
  viewNumberMax,
  votersOf,
} from "leasehold/inner/flease/views/view.js";
import type { KeptView } from "leasehold/inner/flease/views/view.js";
import type { PeerViews } from "leasehold/inner/flease/peer.js";
import type { Packet } from "./stage/network.js";
import type { NodeView } from "./stage/node.js";
import type { Stage } from "./stage/stage.js";

/** A node's part in member changes: what a member keeps across a crash, and which views it sends. */
export class NodeViews {
  readonly #world: Stage;
  readonly #node: NodeView;
  #kept: KeptView | undefined;
  #hasLost = false;
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
    const first = { ...firstView(settings), ...views.first };
    const isNew = first.members.includes(name) && !this.#hasLost;
    const start = () => (isMember ? viewAtFirstStart(first, isNew ? "new" : "existing") : undefined);
    const keep = (kept: KeptView) => {
      if (isMember) this.#kept = kept;
      return true;
    };
    const kept = this.#kept ?? start() ?? { view: first, barrier: 0 };
    return { id: isMember ? name : "", kept, keep };
  }

  /** The disk has been replaced, and the operator knows that the cluster is not new. */
  lose(): void {
    if (this.#kept === undefined) return;
    this.#world.story?.(`${this.#node.name} loses the file of its view`);
    this.#world.counters.viewsLost += 1;
    this.#kept = undefined;
    this.#hasLost = true;
  }

  started(): void {
    this.#stamp = this.#node.peer!.views.view.stamp;
  }

  /** Checks whether the node has entered another view. */
  look(): void {
    const { view } = this.#node.peer!.views;
    if (view.stamp === this.#stamp) return;
    this.#stamp = view.stamp;
    const kind = view.before === undefined ? "view" : "joint view";
    this.#world.story?.(`${this.#node.name} is in ${kind} ${view.number} of ${votersOf(view).join(" ")}`);
    for (const viewEntered of this.#world.observers.viewEntered) viewEntered(this.#node);
  }

  /** Heartbeats and some packets carry their sender's view. */
  tell(packet: Packet): void {
    const { plan, random } = this.#world;
    if (plan.views === undefined) return;
    if (packet.message === undefined || random.chance(plan.views.noteRate))
      packet.view = this.#node.peer!.views.note();
    if (plan.views.asBytes === true) this.#send(packet);
  }

  /** As in the product: a message's stamp is a u32, and an unreadable note is ignored. */
  #send(packet: Packet): void {
    if (packet.message !== undefined) packet.message.view >>>= 0;
    const { number, stamp } = packet.view?.view ?? { number: 0, stamp: 0 };
    if (number > viewNumberMax || stamp > stampMax) packet.view = undefined;
  }
}
