import type { Observer, FleaseReport, WorldView } from "../stage/observer.js";
import type { NodeView } from "../stage/node.js";

/**
 * I13: the upper bound on the time never goes back in one incarnation and the lower one never exceeds it; and while
 * wall clocks agree, no node's lower bound is more than ε above any node's upper one.
 */
export class ClockBounds implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;
  readonly #hi = new Map<NodeView, number>();

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
  }

  started(node: NodeView): void {
    this.#hi.set(node, -Infinity);
  }

  renamed(node: NodeView): void {
    this.#hi.set(node, -Infinity);
  }

  clockRead(node: NodeView): void {
    const { lo, hi } = node.look();
    if (hi < this.#hi.get(node)!) this.#report("I13", `${node.name}'s upper bound goes back`);
    if (lo > hi) this.#report("I13", `${node.name}'s lower bound is above its upper one`);
    this.#hi.set(node, hi);
    if (!this.#view.assumptions.wall) return;
    for (const other of this.#view.nodes) {
      if (other.peer === undefined || other === node) continue;
      const others = other.look();
      this.#ordered(node.name, lo, other.name, others.hi);
      this.#ordered(other.name, others.lo, node.name, hi);
    }
  }

  #ordered(late: string, lo: number, early: string, hi: number): void {
    if (lo - hi > this.#view.settings.maxClockSkewMs)
      this.#report("I13", `${late} is sure of ${lo} while ${early} has not reached ${hi}`);
  }
}
