import type { AcceptorStep, Observer, FleaseReport, WorldView } from "../stage/observer.js";
import type { NodeView } from "../stage/node.js";

/** I15: an acceptor in its recovery wait answers nothing, and the wait is as long as it must be on both clocks. */
export class Silence implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;
  /** When the present life began, on the steady clock. */
  readonly #began = new Map<NodeView, number>();

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
  }

  started(node: NodeView): void {
    this.#began.set(node, node.look().mono);
  }

  handled({ node, reply }: AcceptorStep): void {
    if (reply !== undefined && node.peer?.acceptor?.ready !== true)
      this.#report("I15", `${node.name} answers before it is ready`);
  }

  readied(node: NodeView): void {
    const waited = node.look().mono - this.#began.get(node)!;
    if (waited < this.#view.settings.ttlMaxMs)
      this.#report("I15", `${node.name} is ready after ${waited} ms`);
  }
}
