import type { Observer } from "./stage/observer.js";
import type { NodeView } from "./stage/node.js";

/** The accounts that acceptors charge. As in hosts, each connected node has its own. */
export class Accounts implements Observer {
  /** The nodes that are alive, by the owner under which they were introduced. */
  readonly #owners = new Map<NodeView, string>();

  started(node: NodeView): void {
    for (const [other, owner] of this.#owners) node.peer?.introduce(owner, other.name);
    this.#join(node);
  }

  renamed(node: NodeView): void {
    this.crashing(node);
    this.started(node);
  }

  crashing(node: NodeView): void {
    const owner = this.#owners.get(node);
    if (owner === undefined) return;
    for (const other of this.#owners.keys()) other.peer?.gone(owner, node.name);
    this.#owners.delete(node);
  }

  #join(node: NodeView): void {
    this.#owners.set(node, node.owner);
    for (const other of this.#owners.keys()) other.peer?.introduce(node.owner, node.name);
  }
}
