import { getOrInsert } from "leasehold/inner/common/maps.js";
import { numberAt } from "leasehold/inner/flease/protocol/ballot.js";
import { Kind } from "leasehold/inner/flease/protocol/message.js";
import type { Message } from "leasehold/inner/flease/protocol/message.js";
import type { Observer, FleaseReport, WorldView } from "../stage/observer.js";
import type { NodeView } from "../stage/node.js";

interface OwnerBook {
  readonly node: NodeView;
  readonly incarnation: number;
  last: number;
  /** The receivers of the last ballot. */
  readonly announced: Set<number>;
}

/**
 * I8: all writes with one (ballot, sequence) request the same. I9: no two proposers ever use the same ballot,
 * and each proposer's ballots strictly increase. While A-wall holds, no ballot is further ahead of its
 * sender's clock than another node's clock may be; otherwise it could exceed the floors that must cover it.
 */
export class Ballots implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;
  readonly #owners = new Map<string, OwnerBook>();

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
  }

  sent(from: NodeView, to: number, message: Message): void {
    const { kind, owner, number } = message;
    if (kind > Kind.acquire) return;
    const book = this.#bookOf(from, owner);
    if (book.node !== from || book.incarnation !== from.incarnation)
      this.#report("I9", `${from.name} and ${book.node.name} both work as ${owner}`);
    // READ and ACQ open a ballot; a WRITE continues one.
    if (kind !== Kind.write) this.#opens(book, owner, number, to);
    if (kind !== Kind.read) this.#sameValue(message);
  }

  #opens(book: OwnerBook, owner: string, number: number, to: number): void {
    if (number < book.last || (number === book.last && book.announced.has(to)))
      this.#report("I9", `${owner} opens the ballot ${number} after ${book.last}`);
    if (number !== book.last) {
      book.announced.clear();
      this.#checkAhead(book, number);
    }
    book.last = number;
    book.announced.add(to);
  }

  #checkAhead({ node }: OwnerBook, number: number): void {
    const { assumptions, settings, nowMs } = this.#view;
    if (!assumptions.wall || assumptions.stepsTogether) return;
    // ε by which a seen ballot was ahead, plus ε by which the node's own clock has gone back since, and the
    // rounding to milliseconds.
    const wallMax = node.clock.wallAt(nowMs) + 2 * settings.maxClockSkewMs + 1;
    if (number > numberAt(wallMax))
      this.#report("I9", `${node.name} is ahead of its wall clock with ballot ${number}`);
  }

  #sameValue({ owner, number, sequence, until, duration }: Message): void {
    const first = this.#view.writes.find(owner, number, sequence);
    if (first !== undefined && (first.until !== until || first.duration !== duration))
      this.#report("I8", `${owner} writes two values as (${number}, ${sequence})`);
  }

  #bookOf(node: NodeView, owner: string): OwnerBook {
    const book = getOrInsert(this.#owners, owner, () => ({
      node,
      incarnation: node.incarnation,
      last: 0,
      announced: new Set<number>(),
    }));
    return book;
  }
}
