import { Kind } from "leasehold/inner/flease/protocol/message.js";
import type { Instance } from "leasehold/inner/flease/protocol/instance.js";
import type { Membership, View } from "leasehold/inner/flease/views/view.js";
import { Cells } from "leasehold/inner/flease/protocol/cells.js";
import type { NodeView } from "../stage/node.js";
import type { AcceptorStep, FleaseReport, Hold, Observer, WorldView } from "../stage/observer.js";

/** The last decision for a hold, and its view. */
interface Decided {
  readonly number: number;
  readonly until: number;
  readonly end: number;
  readonly view: View;
}

/**
 * The view in which each hold was decided. A decision is recorded in its event, before the view of its node
 * can change again.
 */
export class DecidedViews {
  readonly #decided = new WeakMap<Instance, Decided>();

  of({ node, instance }: Hold): { readonly view: View; readonly isNew: boolean } {
    const { holdNumber: number, holdExpiresWallMs: until, holdExpiresMonoMs: end } = instance;
    const last = this.#decided.get(instance);
    if (last?.number === number && last.until === until && last.end === end)
      return { view: last.view, isNew: false };
    const { view } = node.peer!.views;
    this.#decided.set(instance, { number, until, end, view });
    return { view, isNew: true };
  }
}

/**
 * Counts majorities independently, so that the checker does not share a mistake in the protocol's own count.
 */
export class CountedCells {
  readonly #settings: WorldView["settings"];
  readonly #cells = new Map<Membership, Cells>();

  constructor({ settings }: WorldView) {
    this.#settings = settings;
  }

  /** The cells in which a quorum needs a majority, as indices of members. */
  of(view: View, resource: string): (readonly number[])[] {
    const halves: Membership[] = view.before === undefined ? [view] : [view.before, view];
    return halves.map((half) => {
      let cells = this.#cells.get(half);
      if (cells === undefined) {
        const indices = half.members.map((id) => this.#settings.members.indexOf(id));
        this.#cells.set(half, (cells = new Cells(half.members, half.cellSize, indices)));
      }
      return cells.of(resource).members;
    });
  }

  /** Whether the members for which `counts` is true are a majority of each cell. */
  isQuorum(view: View, resource: string, counts: (member: number) => boolean): boolean {
    return this.of(view, resource).every((cell) => 2 * cell.filter(counts).length > cell.length);
  }
}

/**
 * I16: a new member can vote when it begins to count. The acknowledgements of a decision carry one view and
 * form a quorum of it. No participant's view goes back, not even when a voting member restarts. While a lease
 * may be in use, no node is in a view whose quorums need not intersect those of the view in which the lease
 * was decided.
 */
export class ViewChanges implements Observer {
  readonly #report: FleaseReport;
  readonly #cells: CountedCells;
  readonly #members: readonly NodeView[];
  readonly #decided = new DecidedViews();
  readonly #acks = new Map<string, Set<number>>();
  readonly #numbers = new Map<NodeView, number>();
  #newest = 0;
  /** The old members of the newest joint view. */
  #former: Membership | undefined;

  constructor(view: WorldView, report: FleaseReport) {
    this.#report = report;
    this.#cells = new CountedCells(view);
    this.#members = view.members;
  }

  started(node: NodeView): void {
    if (!node.isMember) this.#numbers.delete(node);
    this.viewEntered(node);
  }

  viewEntered(node: NodeView): void {
    const { view, isLearner } = node.peer!.views;
    const { number } = view;
    const before = this.#numbers.get(node) ?? 0;
    // Harmless if the node has no vote: it represents nobody.
    if (node.isMember && isLearner) this.#numbers.delete(node);
    else {
      if (number < before) this.#report("I16", `${node.name} goes back from view ${before} to ${number}`);
      this.#numbers.set(node, number);
    }
    if (number <= this.#newest) return;
    this.#newest = number;
    if (view.before !== undefined) {
      this.#former = view.before;
      this.#findNewcomers(view, view.before);
    } else if (this.#former !== undefined) this.#countStragglers(this.#former, number);
  }

  /** From now on its vote is needed, so it must be able to vote. */
  #findNewcomers({ members, number }: View, before: Membership): void {
    for (const { name, peer } of this.#members)
      if (members.includes(name) && !before.members.includes(name) && peer?.acceptor?.ready !== true)
        this.#report("I16", `${name} counts in view ${number} and cannot vote`);
  }

  /** The first is in the view after a joint one: in the view before it no cell may have a majority left. */
  #countStragglers({ members, cellSize }: Membership, number: number): void {
    const left = [...this.#numbers].filter(
      ([node, seen]) => members.includes(node.name) && seen < number - 1,
    );
    if (left.length > cellSize / 2)
      this.#report(
        "I16",
        `somebody is in view ${number} while ${left.length} members are in view ${number - 2}`,
      );
  }

  handled({ node, request, reply }: AcceptorStep): void {
    if (reply?.kind !== Kind.ack) return;
    const key = keyOf(request.owner, request.number, request.sequence, reply.view);
    const acks = this.#acks.get(key);
    if (acks === undefined) this.#acks.set(key, new Set([node.index]));
    else acks.add(node.index);
  }

  looked(resource: string, holds: readonly Hold[]): void {
    for (const hold of holds) {
      const { view, isNew } = this.#decided.of(hold);
      const { node, instance } = hold;
      if (isNew) {
        const key = keyOf(node.owner, instance.holdNumber, instance.holdSequence, view.stamp);
        const acks = this.#acks.get(key);
        if (!this.#cells.isQuorum(view, resource, (member) => acks?.has(member) === true))
          this.#report(
            "I16",
            `${node.name}'s hold of ${resource} was not decided by a quorum of view ${view.number}`,
          );
      }
      // A joint view intersects both neighbours and, by way of the view after it, the next joint view.
      const reach = view.before === undefined ? 1 : 2;
      if (hold.valid && this.#newest > view.number + reach)
        this.#report(
          "I16",
          `${node.name} holds ${resource} by view ${view.number} while somebody is in view ${this.#newest}`,
        );
    }
  }
}

function keyOf(owner: string, number: number, sequence: number, view: number): string {
  return `${owner} ${number} ${sequence} ${view}`;
}
