import type { DeadlineItem } from "../../common/deadlines.js";
import type { Cell } from "./quorum.js";
import { Refusal } from "./message.js";
import type { StateHash } from "./state-hash.js";

export const Operation = { none: 0, acquire: 1, renew: 2 } as const;
export type Operation = (typeof Operation)[keyof typeof Operation];

export const Phase = { idle: 0, backoff: 1, fast: 2, reading: 3, writing: 4 } as const;
export type Phase = (typeof Phase)[keyof typeof Phase];

/** A ballot in which a tenure has written before its present one, so that the release can name it. */
export interface PastBallot {
  readonly number: number;
  readonly sequence: number;
  readonly until: number;
}

/**
 * The proposer's side of one resource's instance of the protocol, as one speaks of an instance of Paxos: at
 * most one operation and at most one hold. (The acceptor's side is its `Entry`.) Flat and reused, as there
 * may be hundreds of thousands.
 */
export class Instance implements DeadlineItem {
  readonly index: number;
  cell: Cell;
  resource = "";

  operation: Operation = Operation.none;
  phase: Phase = Phase.idle;
  /** D, in ms. */
  ttl = 0;
  /** When the operation is given up, on the steady clock. */
  giveUpAt = 0;
  /** The caller will wait if it is refused. */
  waiting = false;
  /** How many wait before it, by the acceptors that refused it. */
  ahead = 0;
  /** Failed tries of the operation so far. */
  tries = 0;
  /** What the last acceptor that refused said. */
  lastRefusal: Refusal = Refusal.none;
  /** For whom an acceptor that was full keeps the most. */
  fullBy = "";
  /** Whether some try heard enough acceptors, so that a failure is no lack of a quorum. */
  heardMajority = false;

  /** The ballot (N, s) of the phase under way. */
  number = 0;
  sequence = 0;
  /** Acceptors that went along with it and that refused it, as bits by position in the cell. */
  acks = 0;
  nacks = 0;
  /** When the phase began, on the steady clock. */
  sentMono = 0;
  /** What the write under way asks for: the lease's end on the wall clock, and its length, ms. */
  until = 0;
  duration = 0;

  /**
   * The unfinished lease of another that was seen, the longest one, and how many refusals named its owner.
   */
  blockedUntil = 0;
  blockedBy = "";
  blockedVotes = 0;
  /** An acceptor has refused the owner because its lease was broken. */
  barred = false;

  /** The hold: what the program was told that it has, until it ends on the wall or on the steady clock. */
  holding = false;
  token = 0;
  holdExpiresWallMs = 0;
  holdExpiresMonoMs = 0;
  /** The decided ballot of the hold, and the last sequence number written in it. */
  holdNumber = 0;
  holdSequence = 0;
  /** Whether the next renewal may go in one round trip. */
  renewable = false;
  /** Earlier ballots of this tenure whose leases may still live. */
  pastBallots: PastBallot[] = [];

  dueMs = 0;
  heapIndex = -1;
  heapSequence = 0;

  constructor(index: number, cell: Cell) {
    this.index = index;
    this.cell = cell;
  }

  /** Ready for another resource. Late replies find a number that no ballot has. */
  clear(): void {
    this.resource = "";
    this.operation = Operation.none;
    this.phase = Phase.idle;
    this.number = 0;
    this.holding = false;
    this.renewable = false;
    this.barred = false;
    if (this.pastBallots.length > 0) this.pastBallots = [];
  }

  /**
   * Nothing of the tenure is going to be released: it ended before its time, so its program may still be at
   * work and relies on the guard of the acceptors, which runs out by itself.
   */
  letRunOut(): void {
    this.holdNumber = 0;
    this.pastBallots = [];
  }

  clone(): Instance {
    const copy: Instance = Object.assign(new Instance(this.index, this.cell), this);
    copy.pastBallots = [...this.pastBallots];
    copy.heapIndex = -1;
    return copy;
  }

  hashInto(hash: StateHash): void {
    hash.flag(this.waiting).number(this.ahead).flag(this.barred).number(this.lastRefusal).text(this.fullBy);
    hash.text(this.resource).number(this.operation).number(this.phase).number(this.ttl).number(this.giveUpAt);
    hash.number(this.tries).number(this.number).number(this.sequence).number(this.acks).number(this.nacks);
    hash.number(this.sentMono).number(this.until).number(this.duration);
    hash.flag(this.heardMajority);
    hash.number(this.blockedUntil).number(this.blockedVotes);
    hash
      .text(this.blockedBy)
      .flag(this.holding)
      .number(this.token)
      .number(this.holdExpiresWallMs)
      .number(this.holdExpiresMonoMs);
    hash.number(this.holdNumber).number(this.holdSequence).flag(this.renewable);
    hash.number(this.heapIndex === -1 ? -1 : this.dueMs);
    for (const past of this.pastBallots) hash.number(past.number).number(past.sequence).number(past.until);
  }
}

/**
 * Freed instances are kept for reuse up to this many; beyond, garbage is cheaper than memory that nobody
 * uses.
 */
const freeInstancesMax = 4_096;

/** The instances of one proposer: by handle, as replies name them, and by resource. */
export class InstanceTable {
  #instances: (Instance | undefined)[] = [];
  /** Handles that can be used again. */
  #freeIndices: number[] = [];
  #freeInstances: Instance[] = [];
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
    let instance = this.#freeInstances.pop();
    if (instance === undefined) {
      instance = new Instance(this.#freeIndices.pop() ?? this.#instances.length, cell);
      this.#instances[instance.index] = instance;
    }
    instance.resource = resource;
    instance.cell = cell;
    this.#byResource.set(resource, instance);
    return instance;
  }

  /** Takes back an instance whose operation and hold are over. */
  give(instance: Instance): void {
    this.#byResource.delete(instance.resource);
    instance.clear();
    if (instance.index < this.#retiredBelow) {
      this.#instances[instance.index] = undefined;
    } else if (this.#freeInstances.length < freeInstancesMax) {
      this.#freeInstances.push(instance);
    } else {
      this.#instances[instance.index] = undefined;
      this.#freeIndices.push(instance.index);
    }
  }

  /**
   * From now on no handle of before is given to another operation: late replies to those must find nothing.
   */
  retire(): void {
    for (const instance of this.#freeInstances) this.#instances[instance.index] = undefined;
    this.#freeInstances = [];
    this.#freeIndices = [];
    this.#retiredBelow = this.#instances.length;
  }

  clone(): InstanceTable {
    const copy = new InstanceTable();
    copy.#retiredBelow = this.#retiredBelow;
    copy.#instances = this.#instances.map((instance) => instance?.clone());
    copy.#freeIndices = [...this.#freeIndices];
    copy.#freeInstances = this.#freeInstances.map((instance) => copy.#instances[instance.index]!);
    for (const [resource, instance] of this.#byResource)
      copy.#byResource.set(resource, copy.#instances[instance.index]!);
    return copy;
  }
}
