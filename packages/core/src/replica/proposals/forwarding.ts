import { NumberMap } from "leasehold/common";
import type { MemberId } from "../../raft/types.js";
import type { Propose, ProposeChange } from "./leader-messages.js";

/** A client's request that is proposed. */
export interface ProposedRequest {
  readonly number: number;
  readonly term: number;
  /** In that term it may have reached the leader, by the connection of this number; -1: it was not sent. */
  connection: number;
}

/** The server whose proposals these are. */
interface Proposer {
  readonly id: MemberId;
  readonly leads: boolean;
  readonly knowsLeader: boolean;
  readonly leadership: { readonly leader: MemberId; readonly term: number };
  readonly send: (message: Propose | ProposeChange) => void;
}

/**
 * The way of a follower's proposals to its leader: in order, no more at a time than the connection takes, and
 * again if that is cut.
 */
export class Forwarding<Request extends ProposedRequest> {
  readonly #context: Proposer;
  /** Numbers of proposals count within it. */
  readonly #life: number;
  /** No proposal with a smaller number is sent any more. */
  settled = 0;
  /** Wait until the connection takes them; some of them for another time. */
  readonly #queue = new NumberMap<Request>();
  #isBlocked = false;
  /** To each member, those that recognize what comes again: with each one what the one before carried may be lost. */
  readonly #connections = new Map<MemberId, number>();

  constructor(context: Proposer, life: number) {
    this.#context = context;
    this.#life = life;
  }

  get size(): number {
    return this.#queue.size;
  }

  /** If the connection has no room, it waits here. */
  send(kind: Propose["kind"] | ProposeChange["kind"], pending: Request, command: Uint8Array): void {
    if (this.#isBlocked || this.#queue.size > 0) {
      this.#queue.set(pending.number, pending);
      return;
    }
    const { id: from, leadership } = this.#context;
    const { connection, number, term } = pending;
    pending.connection = this.#connection;
    const head = { from, to: leadership.leader, number, term };
    const again = connection !== -1;
    this.#context.send({ kind, ...head, life: this.#life, settled: this.settled, again, command });
  }

  /** The connection did not take it. @param again it may have arrived before */
  notSent(pending: Request, again: boolean): void {
    if (!again) pending.connection = -1;
    this.#isBlocked = true;
    this.#queue.set(pending.number, pending);
  }

  /** Nobody waits for it any more, or it is known what became of it. */
  drop(number: number): void {
    this.#queue.delete(number);
  }

  /** What can go now, in its order. */
  take(): readonly Request[] {
    return this.#isBlocked || this.#queue.size === 0 ? [] : this.#takeAll();
  }

  /** A connection takes more. */
  drained(member: MemberId): void {
    if (member === this.#context.leadership.leader) this.#isBlocked = false;
  }

  connected(member: MemberId, takesRepeats: boolean): void {
    this.drained(member);
    if (takesRepeats) this.#connections.set(member, (this.#connections.get(member) ?? 0) + 1);
  }

  /** Those of them that may be lost go again, before what has not gone at all. */
  repeatLost(proposed: Iterable<Request>): void {
    const { knowsLeader, leads } = this.#context;
    if (leads || !knowsLeader) return;
    const current = this.#connection;
    const { term } = this.#context.leadership;
    const waiting = this.#takeAll();
    for (const pending of proposed) {
      const isLost = pending.connection !== -1 && pending.connection !== current;
      if (isLost && pending.term === term) this.#queue.set(pending.number, pending);
    }
    for (const pending of waiting) this.#queue.set(pending.number, pending);
  }

  /** Another leader, or none: those that have not gone to the one before. */
  leadershipChanged(): readonly Request[] {
    this.#isBlocked = false;
    const waiting = this.#takeAll();
    const { term } = this.#context.leadership;
    for (const pending of waiting)
      if (pending.connection !== -1 && pending.term === term) this.#queue.set(pending.number, pending);
    return waiting.filter(({ connection }) => connection === -1);
  }

  get #connection(): number {
    return this.#connections.get(this.#context.leadership.leader) ?? 0;
  }

  #takeAll(): readonly Request[] {
    const waiting = [...this.#queue.values()];
    this.#queue.clear();
    return waiting;
  }
}
