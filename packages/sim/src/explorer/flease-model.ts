import { Acceptor } from "leasehold/inner/flease/protocol/acceptor.js";
import { timeOf } from "leasehold/inner/flease/protocol/ballot.js";
import type { Reading } from "leasehold/inner/flease/protocol/clock.js";
import { holdIsValid } from "leasehold/inner/flease/protocol/expiry.js";
import { Kind, LeaseState, Message, Refusal, copyMessage } from "leasehold/inner/flease/protocol/message.js";
import { Proposer } from "leasehold/inner/flease/protocol/proposer.js";
import type { ProposerSink } from "leasehold/inner/flease/protocol/proposer-ports.js";
import type { FleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import { OperationKind, Phase } from "leasehold/inner/flease/protocol/instance.js";
import type { Instance, Operation } from "leasehold/inner/flease/protocol/instance.js";
import { StateHash } from "leasehold/inner/flease/protocol/state-hash.js";
import { describe } from "../kit/story.js";
import type { Handled, Hold, Model, Move, Stepped } from "./model.js";
import { acceptors } from "./steps.js";

/** The one resource. */
const resource = "r";

/** Tick 0 on the wall clock: a little after the epoch of ballot numbers, for the clocks of earlier lives. */
const startWallMs = timeOf(0) + 100;

/** Ticks since an acceptor's start after which its recovery wait is over. */
const longAgo = 60;

export interface FleaseWorld {
  /** ε, t_max and D, in ticks. */
  readonly skew: number;
  readonly ttlMax: number;
  /** The requested lease times. */
  readonly ttls: readonly number[];
  readonly waitWall: number;
  /** Lead of the floor at a rejoin. */
  readonly floorLead: number;
  /** Acquisitions in one round trip, in two, or both. */
  readonly fast: boolean;
  readonly twoPhase: boolean;
  readonly releases: boolean;
  /**
   * `true`: steady clocks show the same as the wall clocks. `false`: they stand still, as on suspended
   * machines, and the wall clock must exclude alone. By the steady clock no lease would ever be over, so that
   * test must be off.
   */
  readonly steadyClocks: boolean;
  readonly proposers: number;
  /** P7: a restarted proposer keeps its old name. */
  readonly sameIncarnation: boolean;
}

/** A world with the waits that the protocol demands, and no more. */
export function fleaseWorld(options: Partial<FleaseWorld>): FleaseWorld {
  const skew = options.skew ?? 1;
  const ttlMax = options.ttlMax ?? 2;
  return {
    skew,
    ttlMax,
    ttls: [ttlMax],
    waitWall: ttlMax + 2 * skew,
    floorLead: 2 * skew,
    fast: false,
    twoPhase: true,
    releases: false,
    steadyClocks: false,
    proposers: 2,
    sameIncarnation: false,
    ...options,
  };
}

/** A proposer and how often it has started. */
export interface Party {
  readonly proposer: Proposer;
  readonly index: number;
  readonly life: number;
}

/**
 * The product's own acceptor and proposer as a model, with these abstractions: a phase may time out at any
 * moment (its timeout is 0, and the explorer chooses when it fires); a failed attempt is given up at once;
 * and a caller may retry at any time, which covers every pause of the back-off. So nothing random is left,
 * and the pace of retries is not part of the state.
 */
export class FleaseModel implements Model<Acceptor, Party, Message, Message>, ProposerSink {
  readonly proposers: number;
  readonly acceptorMoves: readonly Move<Acceptor, Acceptor>[];
  readonly proposerMoves: readonly Move<Party, Stepped<Party, Message>>[];
  readonly #world: FleaseWorld;
  readonly #settings: FleaseSettings;
  #sent: Message[] = [];
  #began: number | undefined;

  constructor(world: FleaseWorld) {
    this.#world = world;
    this.proposers = world.proposers;
    this.#settings = {
      members: Array.from({ length: acceptors }, (_, index) => `a${index}`),
      cellSize: acceptors,
      view: 1,
      maxClockSkewMs: world.skew,
      clockRateError: 0,
      mutualRateError: 0,
      ttlMaxMs: world.ttlMax,
      ttlMinMs: 0,
      rpcTimeoutMs: 0,
      renewalPatience: 0,
      waitWallMs: world.waitWall,
      waitRateMs: world.ttlMax,
      floorLeadMs: world.floorLead,
      discardAfterMs: 0,
      resourcesMax: 1_000,
    };
    this.acceptorMoves = this.#movesOfAcceptors();
    this.proposerMoves = this.#movesOfProposers();
  }

  startAcceptor(at: number): Acceptor {
    return new Acceptor(this.#settings, this.#reading(at));
  }

  readyAcceptor(): Acceptor {
    const acceptor = this.startAcceptor(-longAgo);
    acceptor.wake(this.#reading(0));
    // Otherwise nothing would ever happen and no violation would be found.
    if (!acceptor.ready)
      throw new Error("assertion failed: with steady clocks that stand still, their test must be off");
    return acceptor;
  }

  startProposer(index: number): Party {
    return this.#start(index, 1);
  }

  keyOfAcceptor(acceptor: Acceptor): string {
    const hash = new StateHash();
    acceptor.hashInto(hash);
    return hash.digest();
  }

  keyOfProposer({ proposer, index, life }: Party): string {
    const hash = new StateHash().number(index).number(life);
    proposer.hashInto(hash, false);
    return hash.digest();
  }

  readonly keyOfRequest = keyOf;
  readonly keyOfReply = keyOf;

  handle(acceptor: Acceptor, request: Message, at: number): Handled<Acceptor, Message> {
    const after = acceptor.clone();
    const reply = new Message();
    if (!after.receive(request, this.#reading(at), reply)) return { after, reply: undefined };
    const isNobodyElses = reply.leaseOwner === request.owner || reply.leaseState === LeaseState.released;
    if (reply.kind === Kind.promise && isNobodyElses) clearLease(reply);
    return { after, reply };
  }

  receive(party: Party, from: number, reply: Message, at: number): Stepped<Party, Message> {
    return this.#step(party, (proposer) => proposer.receive(from, reply, this.#reading(at)));
  }

  senderOf(request: Message): number {
    return Number(request.owner[1]);
  }

  isRefusal(reply: Message): boolean {
    return reply.kind === Kind.nack;
  }

  /** A proposer accepts only replies to its current write, and never reuses a number. */
  matters({ proposer }: Party, from: number, reply: Message): boolean {
    if (this.#world.sameIncarnation) return true;
    const instance = proposer.instanceOf(resource);
    if (instance?.awaits(reply.number, reply.sequence) !== true) return false;
    if (reply.kind === Kind.nack) return true;
    // A counted reply adds nothing when it is repeated, unless it reports a lease.
    const { operation } = instance;
    const counted = (operation.acks & (1 << from)) !== 0;
    if (reply.kind === Kind.ack)
      return !counted && (operation.phase === Phase.writing || operation.phase === Phase.fast);
    return operation.phase === Phase.reading && !(counted && reply.leaseState === LeaseState.none);
  }

  renamed(party: Party, order: readonly number[]): Party {
    const proposer = party.proposer.clone(this);
    const operation = operationOf(proposer.instanceOf(resource));
    if (operation !== undefined) {
      operation.acks = permuted(operation.acks, order);
      operation.nacks = permuted(operation.nacks, order);
    }
    return { ...party, proposer };
  }

  holdOf({ proposer }: Party, at: number): Hold | undefined {
    const instance = proposer.instanceOf(resource);
    if (instance === undefined || !instance.holding) return undefined;
    if (!holdIsValid(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, this.#reading(at)))
      return undefined;
    const {
      tokenNumber: token,
      holdExpiresWallMs: until,
      holdNumber: number,
      holdSequence: sequence,
    } = instance;
    return { owner: proposer.owner, until, token, number, sequence };
  }

  guards(acceptor: Acceptor, hold: Hold): boolean {
    if (!acceptor.ready) return true;
    const entry = acceptor.entry(resource);
    return entry?.leaseOwner === hold.owner && !entry.released && entry.leaseExpiresWallMs >= hold.until;
  }

  releases(request: Message, hold: Hold): boolean {
    const { kind, owner, number, sequence } = request;
    return (
      kind === Kind.release && owner === hold.owner && number === hold.number && sequence > hold.sequence
    );
  }

  describeRequest(request: Message): string {
    return `${request.owner}'s ${inTicks(request)}`;
  }

  describeReply(reply: Message): string {
    return inTicks(reply);
  }

  // Moves

  #movesOfAcceptors(): Move<Acceptor, Acceptor>[] {
    const changed = (acceptor: Acceptor, body: (copy: Acceptor) => boolean) => {
      const copy = acceptor.clone();
      return body(copy) ? copy : undefined;
    };
    const wake = (acceptor: Acceptor, at: number) =>
      acceptor.ready
        ? undefined
        : changed(acceptor, (copy) => {
            copy.wake(this.#reading(at));
            return copy.ready;
          });
    const discard = (acceptor: Acceptor, at: number) =>
      changed(acceptor, (copy) => {
        const { size } = copy;
        copy.discardIdle(this.#reading(at), 1);
        return copy.size < size;
      });
    const bar = (acceptor: Acceptor, at: number) =>
      changed(acceptor, (copy) => {
        const owner = copy.entry(resource)?.leaseOwner ?? "";
        return copy.ready && owner !== "" && copy.bar(resource, owner, this.#reading(at));
      });
    return [
      { name: "ends its recovery wait", kind: undefined, apply: wake },
      { name: "discards what is idle", kind: "discard", apply: discard },
      { name: "breaks the lease", kind: "bar", apply: bar },
    ];
  }

  #movesOfProposers(): Move<Party, Stepped<Party, Message>>[] {
    const { ttls, fast, twoPhase, releases } = this.#world;
    const moves: Move<Party, Stepped<Party, Message>>[] = [];
    for (const ttl of ttls) {
      const length = ttls.length > 1 ? ` for ${ttl}` : "";
      const acquire = (quick: boolean) => (party: Party, at: number) => this.#acquire(party, ttl, quick, at);
      if (fast) moves.push({ name: `acquires fast${length}`, kind: "acquire", apply: acquire(true) });
      if (twoPhase) moves.push({ name: `acquires${length}`, kind: "acquire", apply: acquire(false) });
      moves.push({
        name: `renews${length}`,
        kind: "renew",
        apply: (party, at) => this.#renew(party, ttl, at),
      });
    }
    if (releases)
      moves.push({ name: "releases", kind: undefined, apply: (party, at) => this.#release(party, at) });
    moves.push(
      {
        name: "looks and finds its lease over",
        kind: undefined,
        apply: (party, at) => this.#look(party, at),
      },
      { name: "times out", kind: undefined, apply: (party, at) => this.#timeOut(party, at) },
      { name: "starts again", kind: "restart", apply: (party) => this.#restart(party) },
    );
    return moves;
  }

  #acquire(party: Party, ttl: number, fast: boolean, at: number): Stepped<Party, Message> | undefined {
    if (party.proposer.instanceOf(resource) !== undefined) return undefined;
    return this.#step(party, (proposer) => {
      proposer.acquire(resource, ttl, 0, fast, this.#reading(at));
    });
  }

  #renew(party: Party, ttl: number, at: number): Stepped<Party, Message> | undefined {
    const instance = party.proposer.instanceOf(resource);
    if (instance === undefined || !instance.holding || instance.operation.kind !== OperationKind.none)
      return undefined;
    return this.#step(party, (proposer) =>
      proposer.renew(proposer.instanceOf(resource)!, ttl, this.#reading(at)),
    );
  }

  /** Releases a tenure, or gives up a lapsed one. */
  #release(party: Party, at: number): Stepped<Party, Message> | undefined {
    const instance = party.proposer.instanceOf(resource);
    if (instance === undefined || instance.operation.kind === OperationKind.acquire) return undefined;
    return this.#step(party, (proposer) =>
      proposer.release(proposer.instanceOf(resource)!, this.#reading(at)),
    );
  }

  #look(party: Party, at: number): Stepped<Party, Message> | undefined {
    const instance = party.proposer.instanceOf(resource);
    if (instance === undefined || !instance.holding) return undefined;
    if (holdIsValid(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, this.#reading(at)))
      return undefined;
    return this.#step(party, (proposer) => {
      const looked = proposer.instanceOf(resource)!;
      // The program gives up the lapsed tenure so that it can retry. Without releases it does nothing.
      if (proposer.isHeld(looked, this.#reading(at)) || looked.operation.kind !== OperationKind.none) return;
      proposer.release(looked, this.#reading(at));
      if (!this.#world.releases) this.#sent = [];
    });
  }

  #timeOut(party: Party, at: number): Stepped<Party, Message> | undefined {
    const reading = this.#reading(at);
    if (party.proposer.nextDueMono > reading.mono) return undefined;
    return this.#step(party, (proposer) => proposer.tick(reading));
  }

  #restart({ index, life }: Party): Stepped<Party, Message> {
    return { after: this.#start(index, life + 1), sent: [], began: undefined };
  }

  // The proposer's output

  send(to: number, message: Message): void {
    if (to !== 0) return; // The explorer delivers each message to all.
    const request = copyMessage(message);
    if (request.kind === Kind.read || request.kind === Kind.release)
      request.until = request.duration = request.token = 0;
    this.#sent.push(request);
  }

  /** Losses are covered by delays. */
  reaches(): boolean {
    return true;
  }

  acquired(instance: Instance): void {
    this.#began = instance.tokenNumber;
  }

  refused(): void {}
  failed(): void {}
  renewed(): void {}
  lapsed(): void {}

  // Small things

  #start(index: number, life: number): Party {
    const owner = `p${index}.${this.#world.sameIncarnation ? 1 : life}`;
    return { proposer: new Proposer(this.#settings, owner, 1, this, this), index, life };
  }

  #step(party: Party, body: (proposer: Proposer) => void): Stepped<Party, Message> {
    const proposer = party.proposer.clone(this);
    this.#sent = [];
    this.#began = undefined;
    body(proposer);
    const operation = operationOf(proposer.instanceOf(resource));
    if (operation !== undefined) forgetWhatNobodyReads(operation);
    return { after: { ...party, proposer }, sent: this.#sent, began: this.#began };
  }

  #reading(at: number): Reading {
    const wall = startWallMs + at;
    return { mono: this.#world.steadyClocks ? at : 0, wall, lo: wall, hi: wall, clocksDisagree: false };
  }
}

/** The pending operation. */
function operationOf(instance: Instance | undefined): Operation | undefined {
  return instance?.operation.kind === OperationKind.none ? undefined : instance?.operation;
}

/** Fields that no later step reads. They would only make equal states look different. */
function forgetWhatNobodyReads(operation: Operation): void {
  operation.heardMajority = false;
  operation.lastRefusal = Refusal.none;
  operation.giveUpAt = 0;
  // Only the presence of a blocking lease counts, and not its owner or remaining time: both only determine
  // the time of a retry.
  operation.blockedVotes = operation.ahead = 0;
  operation.blockedBy = "";
  operation.blockedUntil = operation.phase === Phase.reading && operation.blockedUntil > 0 ? 1 : 0;
  if (operation.heapIndex !== -1) operation.dueMs = 0;
  if (operation.phase === Phase.idle)
    operation.acks = operation.nacks = operation.until = operation.duration = operation.sentMono = 0;
  if (operation.phase === Phase.reading) operation.until = operation.duration = 0;
}

/** A reader treats a released lease, and its own, as no lease. */
function clearLease(reply: Message): void {
  reply.leaseState = LeaseState.none;
  reply.leaseOwner = "";
  reply.leaseNumber = reply.leaseSequence = reply.leaseExpiresWallMs = reply.leaseToken = 0;
}

function permuted(set: number, order: readonly number[]): number {
  let result = 0;
  for (const [from, to] of order.entries()) if ((set & (1 << from)) !== 0) result |= 1 << to;
  return result;
}

function keyOf(message: Message): string {
  return Object.values(message).join(" ");
}

const leaseStates = Object.entries(LeaseState);
const refusals = Object.entries(Refusal);

function inTicks(message: Message): string {
  const { kind, number, sequence, until, duration, leaseOwner, leaseState, leaseExpiresWallMs, promised } =
    message;
  const ballot = (n: number) => `${timeOf(n) - startWallMs}.${n % 4096}`;
  const name = describe(message).split(" ")[0]!;
  const written = `${name} (${ballot(number)},${sequence})`;
  if (kind === Kind.write || kind === Kind.acquire)
    return `${written} until ${until - startWallMs} for ${duration}`;
  if (kind !== Kind.promise && kind !== Kind.nack) return written;
  const state = leaseStates.find(([, value]) => value === leaseState)![0];
  const lease =
    leaseState === LeaseState.none
      ? "no lease"
      : `${leaseOwner}'s lease, ${state}, until ${leaseExpiresWallMs - startWallMs}`;
  if (kind === Kind.promise) return `${written}: ${lease}`;
  const why = refusals.find(([, value]) => value === message.refusal)![0];
  return `${written}: ${why}, promised ${ballot(promised)}, ${lease}`;
}
