import { Kind } from "leasehold/inner/flease/protocol/message.js";
import type { AcceptorStep, Observer, FleaseReport, WorldView } from "../stage/observer.js";
import type { NodeView } from "../stage/node.js";

interface Forgotten {
  readonly owner: string;
  readonly resource: string;
  readonly until: number;
  readonly end: number;
}

/**
 * I11: when an acceptor's recovery wait is over, every lease that it forgot is over for its owner too. If
 * A-wall holds, its floor covers every ballot that it forgot.
 */
export class Recovery implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;
  readonly #kept = new Map<NodeView, Forgotten[]>();
  readonly #forgotten = new Map<NodeView, Forgotten[]>();
  readonly #promised = new Map<NodeView, number>();
  readonly #promisedEarlier = new Map<NodeView, number>();

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
  }

  handled({ node, request, reply }: AcceptorStep): void {
    if (reply === undefined || (reply.kind !== Kind.promise && reply.kind !== Kind.ack)) return;
    this.#promised.set(node, Math.max(this.#promised.get(node) ?? 0, request.number));
    if (reply.kind !== Kind.ack) return;
    const write = this.#view.writes.find(request.owner, request.number, request.sequence);
    if (write === undefined) return;
    const { owner, resource } = request;
    const kept = this.#kept.get(node) ?? [];
    kept.push({ owner, resource, until: write.until, end: write.end });
    this.#kept.set(node, kept);
  }

  crashing(node: NodeView): void {
    const alive = [...(this.#forgotten.get(node) ?? []), ...(this.#kept.get(node) ?? [])];
    this.#kept.set(node, []);
    this.#forgotten.set(
      node,
      alive.filter((lease) => this.#isValid(lease)),
    );
    this.#promisedEarlier.set(node, this.#promised.get(node) ?? 0);
  }

  readied(node: NodeView): void {
    for (const lease of this.#forgotten.get(node) ?? []) {
      if (this.#isValid(lease))
        this.#report("I11", `${node.name} is ready while ${lease.owner} relies on ${lease.resource}`);
    }
    const { floor } = node.peer!.acceptor!;
    const promised = this.#promisedEarlier.get(node) ?? 0;
    if (this.#view.assumptions.wall && promised > floor)
      this.#report("I11", `${node.name} is ready with its floor ${floor} below its promise ${promised}`);
  }

  #isValid(lease: Forgotten): boolean {
    const owner = this.#view.nodes.find((node) => node.owner === lease.owner);
    return owner?.peer !== undefined && owner.sleep.reliesOn(lease.until, lease.end);
  }
}
