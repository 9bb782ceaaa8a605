import type { AcceptorStep, Observer, FleaseReport } from "../stage/observer.js";
import type { NodeView } from "../stage/node.js";

/**
 * I5: within one life of an acceptor a promise never decreases (where no entry is kept, the floor is the
 * promise), and no lease has a greater ballot than the promise.
 */
export class Promises implements Observer {
  readonly #report: FleaseReport;
  readonly #promised = new Map<NodeView, Map<string, number>>();

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  started(node: NodeView): void {
    this.#promised.set(node, new Map());
  }

  handled({ node, request, after }: AcceptorStep): void {
    const { resource } = request;
    const promised = after?.promisedNumber ?? node.peer!.acceptor!.floor;
    const before = this.#promised.get(node)?.get(resource) ?? 0;
    if (promised < before)
      this.#report("I5", `${node.name} promised ${before} for ${resource} and now ${promised}`);
    if (after !== undefined && after.leaseNumber > after.promisedNumber)
      this.#report("I5", `${node.name} keeps a lease of ${resource} above its promise`);
    this.#promised.get(node)?.set(resource, promised);
  }
}
