import type { DeadlineItem } from "../../common/deadlines.js";
import type { CellMap } from "./cells.js";
import type { Cell } from "./quorum.js";
import { Refusal } from "./message.js";
import type { StateHash } from "./state-hash.js";

export const OperationKind = { none: 0, acquire: 1, renew: 2 } as const;
export type OperationKind = (typeof OperationKind)[keyof typeof OperationKind];

export const Phase = { idle: 0, backoff: 1, fast: 2, reading: 3, writing: 4 } as const;
export type Phase = (typeof Phase)[keyof typeof Phase];

/** A ballot in which a tenure has written before its present one, so that the release can name it. */
export interface PastBallot {
  readonly number: number;
  readonly sequence: number;
  readonly until: number;
}

/**
 * An acquisition or a renewal in progress: the proposer's data of it. The instance outlives it. Flat and
 * reused.
 */
export class Operation implements DeadlineItem {
  /** The instance of the operation, since `begin`. */
  instance!: Instance;
  kind: OperationKind = OperationKind.none;
  phase: Phase = Phase.idle;
  /** D, in ms. */
  ttl = 0;
  /** Its time-out, on the steady clock. */
  giveUpAt = 0;
  /** The caller will wait if it is refused. */
  waiting = false;
  /** How many wait before it, by the acceptors that refused it. */
  ahead = 0;
  /** Failed tries so far. */
  tries = 0;
  /** The last refusal. */
  lastRefusal: Refusal = Refusal.none;
  /** The node for which a full acceptor keeps the most. */
  fullBy = "";
  /** Whether some attempt got answers from a majority, so that a failure is not `NO_QUORUM`. */
  heardMajority = false;

  /** The ballot (N, s) of the phase under way. */
  number = 0;
  sequence = 0;
  /** Acceptors that acknowledged the phase, and those that refused it, as bits by position in the cell. */
  acks = 0;
  nacks = 0;
  /** When the phase began, on the steady clock. */
  sentMono = 0;
  /** The lease that the write in progress requests: its end on the wall clock, and its length, ms. */
  until = 0;
  duration = 0;

  /**
   * The unfinished lease of another that was seen, the longest one, and how many refusals named its owner.
   */
  blockedUntil = 0;
  blockedBy = "";
  blockedVotes = 0;

  /** When its phase or its pause is over, on the steady clock. */
  dueMs = 0;
  heapIndex = -1;

  /** Starts again, as an operation of this instance. */
  begin(instance: Instance, kind: OperationKind, ttl: number, giveUpAt: number): void {
    this.instance = instance;
    this.kind = kind;
    this.phase = Phase.idle;
    this.ttl = ttl;
    this.giveUpAt = giveUpAt;
    this.waiting = false;
    this.tries = 0;
    this.lastRefusal = Refusal.none;
    this.fullBy = "";
    this.heardMajority = false;
    this.number = 0;
    this.sequence = 0;
  }

  clone(instance: Instance): Operation {
    return Object.assign(new Operation(), this, { instance, heapIndex: -1 });
  }

  hashInto(hash: StateHash): void {
    hash.flag(this.waiting).number(this.ahead).number(this.lastRefusal).text(this.fullBy);
    hash.number(this.kind).number(this.phase).number(this.ttl).number(this.giveUpAt);
    hash.number(this.tries).number(this.number).number(this.sequence).number(this.acks).number(this.nacks);
    hash.number(this.sentMono).number(this.until).number(this.duration);
    hash.flag(this.heardMajority);
    hash.number(this.blockedUntil).text(this.blockedBy).number(this.blockedVotes);
    hash.number(this.heapIndex === -1 ? -1 : this.dueMs);
  }
}

const noPast: readonly PastBallot[] = [];

/**
 * Numbers of holds, in arrays beside their instances. As a field, a fraction or a large number is an object
 * of its own, and the garbage collector would move three of these for each lease.
 */
export type HoldNumbers = Float64Array;

/** Of one instance: its hold's end on both clocks, and its ballot. */
const numbersEach = 3;
const [endWall, endMono, ballot] = [0, 1, 2];

/** Instances whose numbers share an array: some 12 KB, so that a small table takes little. */
const instancesPerPage = 512;

/** Pages of an empty table that are kept. */
const pagesKept = 8;

/** Where the numbers of an instance begin in its page. */
const placeOf = (index: number): number => (index % instancesPerPage) * numbersEach;

const newPage = (): HoldNumbers => new Float64Array(instancesPerPage * numbersEach);

/** The place of all released instances: their former place may belong to another by now. */
const nobodysPage = newPage();

/** The flags of an instance, as bits: each would take eight bytes as a field of its own. */
const Flag = { holding: 1, renewable: 2, barred: 4 } as const;

/**
 * The proposer's side of one resource's instance of the protocol, as one speaks of an instance of Paxos: at
 * most one operation and at most one hold. (The acceptor's side is its `Entry`.) There may be hundreds of
 * thousands of held ones, and few have an operation, so data that only an operation needs is there.
 */
export class Instance {
  readonly index: number;
  readonly resource: string;
  cell: Cell;
  /** The operation under way, or `idle`. */
  operation: Operation;

  /** The tenure's token. */
  tokenNumber = 0;
  /** The last sequence number that was written in the ballot of the hold. */
  holdSequence = 0;
  /** Earlier ballots of this tenure whose leases may still live. */
  pastBallots: readonly PastBallot[] = noPast;
  #flags = 0;
  #page: HoldNumbers;

  /** @param page has the place of this index, which is nobody else's until `leave` */
  constructor(index: number, resource: string, cell: Cell, page: HoldNumbers = newPage()) {
    this.index = index;
    this.resource = resource;
    this.cell = cell;
    this.operation = idle;
    this.#page = page;
    this.holdExpiresWallMs = this.holdExpiresMonoMs = this.holdNumber = 0;
  }

  // The first private method or getter in this class would add a field to each instance.

  /** The hold, as reported to the program, until it ends on the wall or on the steady clock. */
  get holding(): boolean {
    return (this.#flags & Flag.holding) !== 0;
  }

  set holding(holds: boolean) {
    this.#flags = withFlag(this.#flags, Flag.holding, holds);
  }

  /** Whether the next renewal may go in one round trip. */
  get renewable(): boolean {
    return (this.#flags & Flag.renewable) !== 0;
  }

  set renewable(may: boolean) {
    this.#flags = withFlag(this.#flags, Flag.renewable, may);
  }

  /** An acceptor has refused the owner because its lease was broken. */
  get barred(): boolean {
    return (this.#flags & Flag.barred) !== 0;
  }

  set barred(is: boolean) {
    this.#flags = withFlag(this.#flags, Flag.barred, is);
  }

  get holdExpiresWallMs(): number {
    return this.#page[placeOf(this.index) + endWall]!;
  }

  set holdExpiresWallMs(ms: number) {
    this.#page[placeOf(this.index) + endWall] = ms;
  }

  get holdExpiresMonoMs(): number {
    return this.#page[placeOf(this.index) + endMono]!;
  }

  set holdExpiresMonoMs(ms: number) {
    this.#page[placeOf(this.index) + endMono] = ms;
  }

  /** The decided ballot of the hold. */
  get holdNumber(): number {
    return this.#page[placeOf(this.index) + ballot]!;
  }

  set holdNumber(number: number) {
    this.#page[placeOf(this.index) + ballot] = number;
  }

  /** The instance was released: from now on it neither reads nor writes its place. */
  leave(): void {
    this.holding = false;
    this.#page = nobodysPage;
  }

  /**
   * Whether replies to this write in this ballot count: the operation's, or without an operation the hold's,
   * for which a late refusal may still matter. The number 0 is no ballot's.
   */
  awaits(number: number, sequence: number): boolean {
    const { operation } = this;
    if (operation !== idle)
      return number !== 0 && operation.number === number && operation.sequence === sequence;
    return this.holding && this.holdNumber === number && this.holdSequence === sequence;
  }

  /**
   * Nothing of the tenure is going to be released: it ended before its time, so its program may still be at
   * work and relies on the guard of the acceptors, which runs out by itself.
   */
  letRunOut(): void {
    this.holdNumber = 0;
    this.pastBallots = noPast;
  }

  /** Of a tenure: whether `letRunOut` was called. */
  get runsOut(): boolean {
    return this.holdNumber === 0;
  }

  clone(page: HoldNumbers): Instance {
    const { holdExpiresWallMs, holdExpiresMonoMs, holdNumber, holding, renewable, barred } = this;
    const held = { holdExpiresWallMs, holdExpiresMonoMs, holdNumber, holding, renewable, barred };
    const copy: Instance = Object.assign(
      new Instance(this.index, this.resource, this.cell, page),
      this,
      held,
    );
    if (this.operation !== idle) copy.operation = this.operation.clone(copy);
    return copy;
  }

  hashInto(hash: StateHash): void {
    this.operation.hashInto(hash);
    hash.text(this.resource).flag(this.barred).flag(this.holding).number(this.tokenNumber);
    hash.number(this.holdExpiresWallMs).number(this.holdExpiresMonoMs);
    hash.number(this.holdNumber).number(this.holdSequence).flag(this.renewable);
    for (const past of this.pastBallots) hash.number(past.number).number(past.sequence).number(past.until);
  }
}

function withFlag(flags: number, flag: number, on: boolean): number {
  return on ? flags | flag : flags & ~flag;
}

/** Shared by all instances without an operation. Nothing may be written into it. */
const idle: Operation = Object.freeze(new Operation());

/**
 * Operations that are over are kept for reuse up to this many; beyond, garbage is cheaper than memory that
 * nobody uses.
 */
const freeOperationsMax = 4_096;

/** Makes the instance of a resource that is wanted now: for callers who keep more of it. */
export type InstanceMaker<Made extends Instance = Instance> = (
  index: number,
  resource: string,
  cell: Cell,
  page: HoldNumbers,
) => Made;

const plainInstance: InstanceMaker = (index, resource, cell, page) =>
  new Instance(index, resource, cell, page);

/** The instances of one proposer: by handle, as replies name them, and by resource. */
export class InstanceTable {
  make: InstanceMaker = plainInstance;
  #instances: (Instance | undefined)[] = [];
  /** By index, `instancesPerPage` in each. */
  readonly #pages: HoldNumbers[] = [];
  /** Handles that can be used again. */
  #freeIndices: number[] = [];
  readonly #freeOperations: Operation[] = [];
  readonly #byResource = new Map<string, Instance>();
  /** Handles below this one belong to a former owner and are not used again. */
  #retiredBelow = 0;

  get size(): number {
    return this.#byResource.size;
  }

  at(index: number): Instance | undefined {
    return this.#instances[index];
  }

  of(resource: string): Instance | undefined {
    return this.#byResource.get(resource);
  }

  values(): IterableIterator<Instance> {
    return this.#byResource.values();
  }

  /** Hands out an instance for a resource that has none. */
  take(resource: string, cell: Cell): Instance {
    const index = this.#freeIndices.pop() ?? this.#instances.length;
    const instance = this.make(index, resource, cell, this.#pageOf(index));
    this.#instances[instance.index] = instance;
    this.#byResource.set(resource, instance);
    return instance;
  }

  #pageOf(index: number): HoldNumbers {
    return (this.#pages[Math.floor(index / instancesPerPage)] ??= newPage());
  }

  /** Begins an operation of an instance that has none. */
  begin(instance: Instance, kind: OperationKind, ttl: number, giveUpAt: number): Operation {
    const operation = this.#freeOperations.pop() ?? new Operation();
    operation.begin(instance, kind, ttl, giveUpAt);
    instance.operation = operation;
    return operation;
  }

  /** Ends the instance's operation, if any. The operation must no longer be among the deadlines. */
  end(instance: Instance): void {
    const { operation } = instance;
    if (operation === idle) return;
    instance.operation = idle;
    if (this.#freeOperations.length < freeOperationsMax) this.#freeOperations.push(operation);
  }

  /**
   * Returns an instance without operation and hold. Late replies match no instance, or no ballot of the next
   * one.
   */
  give(instance: Instance): void {
    this.#byResource.delete(instance.resource);
    this.#instances[instance.index] = undefined;
    instance.leave();
    if (instance.index >= this.#retiredBelow) this.#freeIndices.push(instance.index);
    if (this.size === 0 && this.#pages.length > pagesKept) this.#pages.length = 0;
  }

  /** From now on no former handle is reused: late replies to those must match nothing. */
  retire(): void {
    this.#freeIndices = [];
    this.#retiredBelow = this.#instances.length;
  }

  /** Enters a view (3.14): cells change, and the next renewal of each tenure takes a new ballot. */
  enterView(cells: CellMap): void {
    for (const instance of this.#byResource.values()) {
      instance.cell = cells.of(instance.resource);
      instance.renewable = false;
    }
  }

  hashInto(hash: StateHash): void {
    const sorted = [...this.#byResource.values()].sort((left, right) => left.index - right.index);
    for (const instance of sorted) instance.hashInto(hash);
  }

  clone(): InstanceTable {
    const copy = new InstanceTable();
    copy.#retiredBelow = this.#retiredBelow;
    copy.#instances = this.#instances.map((instance) => instance?.clone(copy.#pageOf(instance.index)));
    copy.#freeIndices = [...this.#freeIndices];
    for (const [resource, instance] of this.#byResource)
      copy.#byResource.set(resource, copy.#instances[instance.index]!);
    return copy;
  }
}
