import type { Packet } from "./stage/network.js";
import type { NodeView } from "./stage/node.js";

/** The latest lower bound on the time from each sender, to be echoed to that sender (3.10). */
export class Echoes {
  readonly #lo: number[] = [];
  readonly #incarnations: number[] = [];

  hear(packet: Packet): void {
    this.#lo[packet.from] = packet.lo;
    this.#incarnations[packet.from] = packet.fromIncarnation;
  }

  /** 0 if nothing has been received from this life of the node. */
  of(node: NodeView): number {
    return this.#incarnations[node.index] === node.incarnation ? (this.#lo[node.index] ?? 0) : 0;
  }

  forget(): void {
    this.#lo.length = 0;
  }
}
