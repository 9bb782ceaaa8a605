import { Interner, SetInterner } from "./interner.js";
import type { Hold, Model, Move, Stepped } from "./model.js";

/** Acceptors of the small world: enough for majorities of two that share one. */
export const acceptors = 3;

/** A step of a proposer, with numbers in place of things. */
export interface StepResult {
  readonly after: number;
  readonly sent: readonly number[];
  readonly began: number | undefined;
}

/** Numbers of things are below this, times below 64: a key for both fits into 53 bits twice over. */
const idsMax = 2 ** 22;
const timesMax = 64;

function keyFor(first: number, second: number, at: number): number {
  return (first * idsMax + second) * timesMax + at;
}

/**
 * All transitions of one acceptor or one proposer, computed once by the protocol's own code and then looked
 * up. The world has a hundred times more states than its parts have.
 */
export class Steps<Acceptor, Proposer, Request, Reply> {
  readonly model: Model<Acceptor, Proposer, Request, Reply>;
  readonly acceptors: Interner<Acceptor>;
  readonly proposers: Interner<Proposer>;
  readonly requests: Interner<Request>;
  readonly replies: Interner<Reply>;
  readonly sets = new SetInterner();
  readonly #handled = new Map<number, { readonly after: number; readonly reply: number }>();
  readonly #received = new Map<number, StepResult>();
  readonly #acceptorMoves = new Map<number, number>();
  readonly #proposerMoves = new Map<number, StepResult | undefined>();
  readonly #relevant = new Map<number, number>();
  readonly #renamed = new Map<number, number>();
  readonly #renamedReplies = new Map<number, number>();
  readonly #holds = new Map<number, Hold | undefined>();
  readonly #refusals: boolean[] = [];

  constructor(model: Model<Acceptor, Proposer, Request, Reply>) {
    this.model = model;
    this.acceptors = new Interner((acceptor) => model.keyOfAcceptor(acceptor));
    this.proposers = new Interner((proposer) => model.keyOfProposer(proposer));
    this.requests = new Interner((request) => model.keyOfRequest(request));
    this.replies = new Interner((reply) => model.keyOfReply(reply));
  }

  /** `reply` is -1 when there is none. */
  handle(acceptor: number, request: number, at: number): { readonly after: number; readonly reply: number } {
    const key = keyFor(acceptor, request, at);
    let result = this.#handled.get(key);
    if (result === undefined) {
      const { model } = this;
      const { after, reply } = model.handle(this.acceptors.at(acceptor), this.requests.at(request), at);
      result = {
        after: this.acceptors.idOf(after),
        reply: reply === undefined ? -1 : this.replies.idOf(reply),
      };
      if (reply !== undefined) this.#refusals[result.reply] = model.isRefusal(reply);
      this.#handled.set(key, result);
    }
    return result;
  }

  isRefusal(reply: number): boolean {
    return this.#refusals[reply]!;
  }

  receive(proposer: number, from: number, reply: number, at: number): StepResult {
    const key = keyFor(proposer, inFlight(reply, from), at);
    let result = this.#received.get(key);
    if (result === undefined) {
      const stepped = this.model.receive(this.proposers.at(proposer), from, this.replies.at(reply), at);
      result = this.#result(stepped);
      this.#received.set(key, result);
    }
    return result;
  }

  /** The acceptor after the move; -1 when it can't make it. */
  moveAcceptor(move: Move<Acceptor, Acceptor>, index: number, acceptor: number, at: number): number {
    const key = keyFor(acceptor, index, at);
    let result = this.#acceptorMoves.get(key);
    if (result === undefined) {
      const after = move.apply(this.acceptors.at(acceptor), at);
      result = after === undefined ? -1 : this.acceptors.idOf(after);
      this.#acceptorMoves.set(key, result);
    }
    return result;
  }

  moveProposer(
    move: Move<Proposer, Stepped<Proposer, Request>>,
    index: number,
    proposer: number,
    at: number,
  ): StepResult | undefined {
    const key = keyFor(proposer, index, at);
    if (this.#proposerMoves.has(key)) return this.#proposerMoves.get(key);
    const stepped = move.apply(this.proposers.at(proposer), at);
    const result = stepped && this.#result(stepped);
    this.#proposerMoves.set(key, result);
    return result;
  }

  /** The replies in flight to a proposer that can still have an effect. */
  relevant(replies: number, proposer: number): number {
    if (replies === 0) return 0;
    const key = proposer * idsMax + replies;
    let result = this.#relevant.get(key);
    if (result === undefined) {
      const to = this.proposers.at(proposer);
      const kept = this.sets
        .members(replies)
        .filter((flight) => this.model.matters(to, senderIn(flight), this.replies.at(replyIn(flight))));
      result = this.sets.idOf(kept);
      this.#relevant.set(key, result);
    }
    return result;
  }

  /** With acceptor `i` called `order[i]`; `index` is the order's number. */
  renamed(proposer: number, order: readonly number[], index: number): number {
    if (index === 0) return proposer;
    const key = proposer * 8 + index;
    let result = this.#renamed.get(key);
    if (result === undefined) {
      result = this.proposers.idOf(this.model.renamed(this.proposers.at(proposer), order));
      this.#renamed.set(key, result);
    }
    return result;
  }

  renamedReplies(replies: number, order: readonly number[], index: number): number {
    if (index === 0 || replies === 0) return replies;
    const key = replies * 8 + index;
    let result = this.#renamedReplies.get(key);
    if (result === undefined) {
      const members = this.sets.members(replies);
      result = this.sets.idOf(members.map((flight) => inFlight(replyIn(flight), order[senderIn(flight)]!)));
      this.#renamedReplies.set(key, result);
    }
    return result;
  }

  holdOf(proposer: number, at: number): Hold | undefined {
    const key = proposer * timesMax + at;
    if (this.#holds.has(key)) return this.#holds.get(key);
    const hold = this.model.holdOf(this.proposers.at(proposer), at);
    this.#holds.set(key, hold);
    return hold;
  }

  #result(stepped: Stepped<Proposer, Request>): StepResult {
    return {
      after: this.proposers.idOf(stepped.after),
      sent: stepped.sent.map((request) => this.requests.idOf(request)),
      began: stepped.began,
    };
  }
}

/** A reply on its way: which, and from which acceptor. */
export function inFlight(reply: number, from: number): number {
  return reply * acceptors + from;
}

export function senderIn(flight: number): number {
  return flight % acceptors;
}

export function replyIn(flight: number): number {
  return Math.floor(flight / acceptors);
}
