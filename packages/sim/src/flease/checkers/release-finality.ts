import { getOrInsert } from "leasehold/inner/common/maps.js";
import type { Message } from "leasehold/inner/flease/protocol/message.js";
import { Kind } from "leasehold/inner/flease/protocol/message.js";
import type { Hold, Observer, FleaseReport } from "../stage/observer.js";
import type { NodeView } from "../stage/node.js";

interface ResourceBook {
  last: number;
  closed: number;
}

/** I12: a node never holds by a ballot that it has released or closed. */
export class ReleaseFinality implements Observer {
  readonly #report: FleaseReport;
  readonly #books = new Map<NodeView, Map<string, ResourceBook>>();

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  started(node: NodeView): void {
    this.#books.set(node, new Map());
  }

  /** Another owner counts its ballots from the beginning. */
  renamed(node: NodeView): void {
    this.#books.set(node, new Map());
  }

  sent(from: NodeView, _to: number, message: Message): void {
    if (message.kind > Kind.acquire) return;
    const book = this.#bookOf(from, message.resource);
    book.last = Math.max(book.last, message.number);
  }

  closed(node: NodeView, resource: string): void {
    const book = this.#bookOf(node, resource);
    book.closed = book.last;
  }

  looked(resource: string, holds: readonly Hold[]): void {
    for (const { node, instance, valid } of holds) {
      if (valid && instance.holdNumber <= this.#bookOf(node, resource).closed)
        this.#report("I12", `${node.name} holds ${resource} by the closed ballot ${instance.holdNumber}`);
    }
  }

  #bookOf(node: NodeView, resource: string): ResourceBook {
    const books = this.#books.get(node)!;
    return getOrInsert(books, resource, () => ({ last: 0, closed: 0 }));
  }
}
