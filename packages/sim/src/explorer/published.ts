import type { Handled, Hold, Model, Move, Stepped } from "./model.js";

/**
 * The four algorithms of the Flease report as they were published, and nothing else: a register per acceptor
 * (Algorithm 1), reading and writing it on a majority (2), acquiring a lease (3) and learning one (4). A
 * restarted acceptor waits t_max and has forgotten everything; proposers complete other proposers' unfinished
 * leases. This model exists to be refuted (F1), not to be used.
 */
export interface PublishedWorld {
  readonly skew: number;
  readonly ttlMax: number;
}

export interface PublishedAcceptor {
  readonly readyAt: number;
  readonly ready: boolean;
  /** The ballots of the last read and the last write. */
  readonly read: number;
  readonly written: number;
  readonly lease: PublishedLease | undefined;
}

export interface PublishedLease {
  readonly owner: string;
  readonly until: number;
}

export interface PublishedProposer {
  readonly index: number;
  readonly ballot: number;
  readonly phase: "idle" | "reading" | "writing";
  /** The acceptors that have acknowledged, and the leases that readers among them reported. */
  readonly acks: readonly number[];
  readonly readBallot: number;
  readonly readLease: PublishedLease | undefined;
  /** The value being written. */
  readonly lease: PublishedLease | undefined;
  readonly hold: PublishedLease | undefined;
  readonly token: number;
}

export interface PublishedRequest {
  readonly kind: "READ" | "WRITE";
  readonly from: number;
  readonly ballot: number;
  readonly lease: PublishedLease | undefined;
}

export interface PublishedReply {
  readonly kind: "ackREAD" | "ackWRITE" | "nack";
  readonly ballot: number;
  readonly written: number;
  readonly lease: PublishedLease | undefined;
}

const majority = 2;

/** Ballots are (clock, id), with the id in the lowest bit. */
const proposersMax = 2;

export class PublishedModel implements Model<
  PublishedAcceptor,
  PublishedProposer,
  PublishedRequest,
  PublishedReply
> {
  readonly proposers = proposersMax;
  readonly acceptorMoves: readonly Move<PublishedAcceptor, PublishedAcceptor>[] = [
    {
      name: "ends its recovery wait",
      kind: undefined,
      apply: (acceptor, at) =>
        acceptor.ready || at < acceptor.readyAt ? undefined : { ...acceptor, ready: true, readyAt: 0 },
    },
  ];
  readonly proposerMoves: readonly Move<PublishedProposer, Stepped<PublishedProposer, PublishedRequest>>[] = [
    { name: "acquires", kind: "acquire", apply: (proposer, at) => this.#acquire(proposer, at) },
  ];
  readonly #world: PublishedWorld;

  constructor(world: PublishedWorld) {
    this.#world = world;
  }

  startAcceptor(at: number): PublishedAcceptor {
    return { ...this.readyAcceptor(), ready: false, readyAt: at + this.#world.ttlMax };
  }

  readyAcceptor(): PublishedAcceptor {
    return { ready: true, readyAt: 0, read: -1, written: -1, lease: undefined };
  }

  startProposer(index: number): PublishedProposer {
    const nothing = { readLease: undefined, lease: undefined, hold: undefined };
    return { index, ballot: -1, phase: "idle", acks: [], readBallot: -1, token: 0, ...nothing };
  }

  readonly keyOfAcceptor = (acceptor: PublishedAcceptor): string => JSON.stringify(acceptor);
  readonly keyOfProposer = (proposer: PublishedProposer): string => JSON.stringify(proposer);
  readonly keyOfRequest = (request: PublishedRequest): string => JSON.stringify(request);
  readonly keyOfReply = (reply: PublishedReply): string => JSON.stringify(reply);

  /** Algorithm 1. */
  handle(
    acceptor: PublishedAcceptor,
    { kind, ballot, lease }: PublishedRequest,
  ): Handled<PublishedAcceptor, PublishedReply> {
    if (!acceptor.ready) return { after: acceptor, reply: undefined };
    const { read, written } = acceptor;
    if (kind === "READ") {
      if (written >= ballot || read >= ballot) return { after: acceptor, reply: this.#nack(ballot) };
      const reply: PublishedReply = { kind: "ackREAD", ballot, written, lease: acceptor.lease };
      return { after: { ...acceptor, read: ballot }, reply };
    }
    if (written > ballot || read > ballot) return { after: acceptor, reply: this.#nack(ballot) };
    const after = { ...acceptor, written: ballot, lease };
    return { after, reply: { kind: "ackWRITE", ballot, written: -1, lease: undefined } };
  }

  /** Algorithms 2 to 4: what to do with the acknowledgements of a majority. */
  receive(
    proposer: PublishedProposer,
    from: number,
    reply: PublishedReply,
    at: number,
  ): Stepped<PublishedProposer, PublishedRequest> {
    const { index, ballot } = proposer;
    if (!this.matters(proposer, from, reply)) return unchanged(proposer);
    if (reply.kind === "nack") return unchanged({ ...this.#idle(proposer) });
    const acks = [...proposer.acks, from].sort((left, right) => left - right);
    const newer = reply.kind === "ackREAD" && reply.written > proposer.readBallot;
    const received: PublishedProposer = newer
      ? { ...proposer, acks, readBallot: reply.written, readLease: reply.lease }
      : { ...proposer, acks };
    if (acks.length < majority) return unchanged(received);
    if (proposer.phase === "writing") return this.#decided(received);
    const known = received.readLease;
    const { skew, ttlMax } = this.#world;
    // In the safety period of another's lease a proposer waits, and retries.
    if (known !== undefined && at >= known.until && at < known.until + skew)
      return unchanged(this.#idle(received));
    const free = known === undefined || at >= known.until + skew;
    const lease = free ? { owner: `p${index}`, until: at + ttlMax } : known;
    const writing: PublishedProposer = { ...this.#idle(received), ballot, phase: "writing", lease };
    return { after: writing, sent: [{ kind: "WRITE", from: index, ballot, lease }], began: undefined };
  }

  senderOf(request: PublishedRequest): number {
    return request.from;
  }

  isRefusal(reply: PublishedReply): boolean {
    return reply.kind === "nack";
  }

  matters(proposer: PublishedProposer, from: number, reply: PublishedReply): boolean {
    if (reply.ballot !== proposer.ballot || proposer.acks.includes(from)) return false;
    if (reply.kind === "nack") return proposer.phase !== "idle";
    return proposer.phase === (reply.kind === "ackREAD" ? "reading" : "writing");
  }

  renamed(proposer: PublishedProposer, order: readonly number[]): PublishedProposer {
    const acks = proposer.acks.map((from) => order[from]!).sort((left, right) => left - right);
    return { ...proposer, acks };
  }

  holdOf({ hold, token, ballot }: PublishedProposer, at: number): Hold | undefined {
    if (hold === undefined || at >= hold.until) return undefined;
    return { owner: hold.owner, until: hold.until, token, number: ballot, sequence: 0 };
  }

  guards(): boolean {
    return true;
  }

  releases(): boolean {
    return false;
  }

  describeRequest({ kind, from, ballot, lease }: PublishedRequest): string {
    return `p${from}'s ${kind}(${describeBallot(ballot)})${describeLease(lease)}`;
  }

  describeReply({ kind, ballot, lease }: PublishedReply): string {
    return `${kind}(${describeBallot(ballot)})${describeLease(lease)}`;
  }

  #acquire(
    proposer: PublishedProposer,
    at: number,
  ): Stepped<PublishedProposer, PublishedRequest> | undefined {
    if (proposer.phase !== "idle") return undefined;
    const ballot = at * proposersMax + proposer.index;
    if (ballot <= proposer.ballot) return undefined;
    const after: PublishedProposer = { ...this.#idle(proposer), ballot, phase: "reading" };
    return {
      after,
      sent: [{ kind: "READ", from: proposer.index, ballot, lease: undefined }],
      began: undefined,
    };
  }

  #decided(proposer: PublishedProposer): Stepped<PublishedProposer, PublishedRequest> {
    const { lease, index, ballot } = proposer;
    if (lease?.owner !== `p${index}`) return unchanged(this.#idle(proposer));
    return { after: { ...this.#idle(proposer), hold: lease, token: ballot }, sent: [], began: ballot };
  }

  #idle(proposer: PublishedProposer): PublishedProposer {
    const { index, ballot, hold, token } = proposer;
    return { ...this.startProposer(index), ballot, hold, token };
  }

  #nack(ballot: number): PublishedReply {
    return { kind: "nack", ballot, written: -1, lease: undefined };
  }
}

function unchanged(after: PublishedProposer): Stepped<PublishedProposer, PublishedRequest> {
  return { after, sent: [], began: undefined };
}

function describeBallot(ballot: number): string {
  return `${Math.floor(ballot / proposersMax)}.p${ballot % proposersMax}`;
}

function describeLease(lease: PublishedLease | undefined): string {
  return lease === undefined ? "" : ` ${lease.owner}'s lease until ${lease.until}`;
}
