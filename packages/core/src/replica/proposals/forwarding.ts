import { NumberMap } from "leasehold/common";
import type { MemberId } from "../../raft/types.js";
import type { Propose, ProposeChange } from "./leader-messages.js";

/** A client's request that was proposed. */
export interface ProposedRequest {
  readonly number: number;
  readonly term: number;
  /** The connection by which the request may have reached the leader in that term; -1: not sent. */
  connection: number;
}

/** The server that makes these proposals. */
interface Proposer {
  readonly id: MemberId;
  readonly leads: boolean;
  readonly knowsLeader: boolean;
  readonly leadership: { readonly leader: MemberId; readonly term: number };
  readonly send: (message: Propose | ProposeChange) => void;
}

/**
 * Sends a follower's proposals to its leader: in order, with back-pressure, and again after a lost
 * connection.
 */
export class Forwarding<Request extends ProposedRequest> {
  readonly #context: Proposer;
  /** Identifies this process: proposals are numbered within it. */
  readonly #life: number;
  /** Proposals with smaller numbers will never be sent again. */
  settled = 0;
  /** Proposals waiting for room on the connection. Some were sent before. */
  readonly #queue = new NumberMap<Request>();
  #isBlocked = false;
  /**
   * Connection numbers of members that recognize repeats. A new connection means that messages of the
   * previous one may be lost.
   */
  readonly #connections = new Map<MemberId, number>();

  constructor(context: Proposer, life: number) {
    this.#context = context;
    this.#life = life;
  }

  get size(): number {
    return this.#queue.size;
  }

  /** Queues if the connection has no room. */
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

  /**
   * The connection did not accept the proposal.
   * @param again an earlier copy may have arrived
   */
  notSent(pending: Request, again: boolean): void {
    if (!again) pending.connection = -1;
    this.#isBlocked = true;
    this.#queue.set(pending.number, pending);
  }

  /** The proposal's client has gone, or its outcome is known. */
  drop(number: number): void {
    this.#queue.delete(number);
  }

  /** Takes what can be sent now, in order. */
  take(): readonly Request[] {
    return this.#isBlocked || this.#queue.size === 0 ? [] : this.#takeAll();
  }

  /** A connection accepts messages again. */
  drained(member: MemberId): void {
    if (member === this.#context.leadership.leader) this.#isBlocked = false;
  }

  connected(member: MemberId, takesRepeats: boolean): void {
    this.drained(member);
    if (takesRepeats) this.#connections.set(member, (this.#connections.get(member) ?? 0) + 1);
  }

  /** Queues possibly lost proposals again, before those that were never sent. */
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

  /** The leader has changed or is gone. Returns the proposals not sent to the previous one. */
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
