import type { Packet } from "./stage/network.js";
import type { NodeView } from "./stage/node.js";

/** Lower bounds on the time as a node last heard them, by their senders, to whom they are sent back (3.10). */
export class Echoes {
  readonly #lo: number[] = [];
  readonly #incarnations: number[] = [];

  hear(packet: Packet): void {
    this.#lo[packet.from] = packet.lo;
    this.#incarnations[packet.from] = packet.fromIncarnation;
  }

  /** 0 when nothing was heard of this life of the node. */
  of(node: NodeView): number {
    return this.#incarnations[node.index] === node.incarnation ? (this.#lo[node.index] ?? 0) : 0;
  }

  forget(): void {
    this.#lo.length = 0;
  }
}
