import type { DeadlineItem } from "../../common/deadlines.js";
import type { CellMap } from "./cells.js";
import type { Cell } from "./quorum.js";
import { Refusal } from "./message.js";
import type { StateHash } from "./state-hash.js";

export const OperationKind = { none: 0, acquire: 1, renew: 2 } as const;
export type OperationKind = (typeof OperationKind)[keyof typeof OperationKind];

export const Phase = { idle: 0, backoff: 1, fast: 2, reading: 3, writing: 4 } as const;
export type Phase = (typeof Phase)[keyof typeof Phase];

/** A ballot in which a tenure wrote before its present one, kept so that the release can name it. */
export interface PastBallot {
  readonly number: number;
  readonly sequence: number;
  readonly until: number;
}

/**
 * The proposer's data for an acquisition or a renewal in progress. The instance outlives it. Flat and reused.
 */
export class Operation implements DeadlineItem {
  /** The instance of the operation, set by `begin`. */
  instance!: Instance;
  kind: OperationKind = OperationKind.none;
  phase: Phase = Phase.idle;
  /** The requested lease time D, ms. */
  ttl = 0;
  /** Its deadline, on the steady clock. */
  giveUpAt = 0;
  /** The caller will wait if refused. */
  waiting = false;
  /** How many waiters are ahead of it, according to the acceptors that refused it. */
  ahead = 0;
  /** Failed tries so far. */
  tries = 0;
  /** The last refusal. */
  lastRefusal: Refusal = Refusal.none;
  /** The node with the most entries at an acceptor that was full. */
  fullBy = "";
  /** Whether some attempt got answers from a majority, so that a failure is not `NO_QUORUM`. */
  heardMajority = false;

  /** The ballot (N, s) of the current phase. */
  number = 0;
  sequence = 0;
  /**
   * Acceptors that acknowledged the phase, and those that refused it, as bit masks by position in the cell.
   */
  acks = 0;
  nacks = 0;
  /** When the phase began, on the steady clock. */
  sentMono = 0;
  /** The lease requested by the write in progress: its end on the wall clock, and its length, ms. */
  until = 0;
  duration = 0;

  /** The longest unfinished lease of another owner that was seen, and how many refusals named that owner. */
  blockedUntil = 0;
  blockedBy = "";
  blockedVotes = 0;

  /** When its phase or its pause ends, on the steady clock. */
  dueMs = 0;
  heapIndex = -1;

  /** Resets it to an operation of this instance. */
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
 * The numbers of holds, in arrays outside their instances. As a field, a fraction or a large number is an
 * object of its own, and the garbage collector would move three of these for each lease.
 */
export type HoldNumbers = Float64Array;

/** For each instance: its hold's end on both clocks, and its ballot. */
const numbersEach = 3;
const [endWall, endMono, ballot] = [0, 1, 2];

/** Instances whose numbers share an array. It takes about 12 KB, so that a small table stays small. */
const instancesPerPage = 512;

/** Empty pages kept for reuse. */
const pagesKept = 8;

/** The offset of an instance's numbers in its page. */
const placeOf = (index: number): number => (index % instancesPerPage) * numbersEach;

const newPage = (): HoldNumbers => new Float64Array(instancesPerPage * numbersEach);

/** The place of all released instances: their former place may belong to another instance by now. */
const nobodysPage = newPage();

/** The flags of an instance, as a bit mask: each would take eight bytes as a field of its own. */
const Flag = { holding: 1, renewable: 2, barred: 4 } as const;

/**
 * The proposer's side of one resource's instance of the protocol, in the sense of an instance of Paxos. It
 * has at most one operation and at most one hold. (The acceptor's side is its `Entry`.) Hundreds of thousands
 * may be held at once and few have an operation, so data that only an operation needs is in `Operation`.
 */
export class Instance {
  readonly index: number;
  readonly resource: string;
  cell: Cell;
  /** The operation under way, or `idle`. */
  operation: Operation;

  /** The tenure's token. */
  tokenNumber = 0;
  /** The last sequence number written in the hold's ballot. */
  holdSequence = 0;
  /** Earlier ballots of this tenure whose leases may not have run out. */
  pastBallots: readonly PastBallot[] = noPast;
  #flags = 0;
  #page: HoldNumbers;

  /** @param page has a place at this index that is reserved for this instance until `leave` */
  constructor(index: number, resource: string, cell: Cell, page: HoldNumbers = newPage()) {
    this.index = index;
    this.resource = resource;
    this.cell = cell;
    this.operation = idle;
    this.#page = page;
    this.holdExpiresWallMs = this.holdExpiresMonoMs = this.holdNumber = 0;
  }

  // The first private method or getter in this class would add a field to each instance.

  /** Whether there is a hold, as reported to the program, that neither clock has ended. */
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

  /** An acceptor refused the owner because its lease was broken. */
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

  /** Releases the instance: from now on it neither reads nor writes its place. */
  leave(): void {
    this.holding = false;
    this.#page = nobodysPage;
  }

  /**
   * Whether replies to this write in this ballot count. The write must be the operation's; without an
   * operation it must be the hold's, for which a late refusal may still matter. Number 0 belongs to no
   * ballot.
   */
  awaits(number: number, sequence: number): boolean {
    const { operation } = this;
    if (operation !== idle)
      return number !== 0 && operation.number === number && operation.sequence === sequence;
    return this.holding && this.holdNumber === number && this.holdSequence === sequence;
  }

  /**
   * No ballot of the tenure will be released. The tenure ended early, so its program may still be at work,
   * relying on the acceptors' guard until that runs out.
   */
  letRunOut(): void {
    this.holdNumber = 0;
    this.pastBallots = noPast;
  }

  /** Whether `letRunOut` was called for the tenure. */
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

/** Shared by all instances without an operation. It must not be written to. */
const idle: Operation = Object.freeze(new Operation());

/** Finished operations kept for reuse, at most. Beyond that, garbage is cheaper than idle memory. */
const freeOperationsMax = 4_096;

/** Makes the instance of a resource: for callers that keep more data in it. */
export type InstanceMaker<Made extends Instance = Instance> = (
  index: number,
  resource: string,
  cell: Cell,
  page: HoldNumbers,
) => Made;

const plainInstance: InstanceMaker = (index, resource, cell, page) =>
  new Instance(index, resource, cell, page);

/** The instances of one proposer: by handle, which replies carry, and by resource. */
export class InstanceTable {
  make: InstanceMaker = plainInstance;
  #instances: (Instance | undefined)[] = [];
  /** By index, `instancesPerPage` in each page. */
  readonly #pages: HoldNumbers[] = [];
  /** Handles free for reuse. */
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

  /** Allocates an instance for a resource that has none. */
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

  /** Begins an operation for an instance that has none. */
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
   * Frees an instance without operation and hold. Late replies match no instance, or no ballot of the
   * handle's next one.
   */
  give(instance: Instance): void {
    this.#byResource.delete(instance.resource);
    this.#instances[instance.index] = undefined;
    instance.leave();
    if (instance.index >= this.#retiredBelow) this.#freeIndices.push(instance.index);
    if (this.size === 0 && this.#pages.length > pagesKept) this.#pages.length = 0;
  }

  /** Makes all handles so far unusable, as late replies to them must match nothing. */
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
