import type { DeadlineItem } from "../lease/deadlines.js";
import { Deadlines } from "../lease/deadlines.js";
import { Cells } from "./cells.js";
import type { Reading } from "./clock.js";
import { Kind, LeaseState, Message } from "./message.js";
import { sizeOf } from "./quorum.js";
import type { Cell } from "./quorum.js";
import type { FleaseSettings } from "./settings.js";

/** What a majority, or fewer, said of a resource. A hint: it may have been released or renewed meanwhile (3.9). */
export interface QueryAnswer {
  /** False when fewer than a majority answered in time. */
  readonly answered: boolean;
  readonly held: boolean;
  /** The whole majority told of the same unfinished lease. */
  readonly confirmed: boolean;
  readonly owner: string;
  readonly token: number;
  /** When the lease ends on the wall clock; it may block others up to ε longer. */
  readonly until: number;
}

class Query implements DeadlineItem {
  answers = 0;
  /** How many told of exactly the lease below. */
  same = 0;
  leaseState: LeaseState = LeaseState.none;
  leaseOwner = "";
  leaseNumber = 0;
  leaseSequence = 0;
  leaseUntil = 0;
  leaseToken = 0;
  dueMs = 0;
  heapIndex = -1;
  heapSequence = 0;
  readonly handle: number;
  readonly cell: Cell;
  readonly done: (answer: QueryAnswer) => void;

  constructor(handle: number, cell: Cell, done: (answer: QueryAnswer) => void) {
    this.handle = handle;
    this.cell = cell;
    this.done = done;
  }
}

/**
 * Asking who holds a resource (3.9): all acceptors of its cell are asked, and of a majority's answers the one with the highest
 * ballot counts. It changes nothing and writes nothing back (repair F8), and nothing is ever based on it.
 */
export class Queries {
  readonly #settings: FleaseSettings;
  readonly #cells: Cells;
  readonly #send: (to: number, message: Message) => void;
  readonly #open = new Map<number, Query>();
  readonly #deadlines = new Deadlines<Query>();
  readonly #out = new Message();
  #lastHandle = 0;

  constructor(settings: FleaseSettings, send: (to: number, message: Message) => void) {
    this.#settings = settings;
    this.#send = send;
    this.#cells = new Cells(settings.members, settings.cellSize);
  }

  get nextDueMono(): number {
    return this.#deadlines.nextDueMs();
  }

  ask(
    resource: string,
    owner: string,
    timeoutMs: number,
    now: Reading,
    done: (answer: QueryAnswer) => void,
  ): void {
    const handle = (this.#lastHandle = (this.#lastHandle % 0xffff_ffff) + 1);
    const query = new Query(handle, this.#cells.of(resource), done);
    this.#open.set(handle, query);
    this.#deadlines.schedule(query, now.mono + timeoutMs);
    const out = this.#out;
    out.kind = Kind.query;
    out.view = this.#settings.view;
    out.slot = handle;
    out.resource = resource;
    out.owner = owner;
    out.number = 0;
    out.sequence = 0;
    for (const member of query.cell.members) this.#send(member, out);
  }

  receive(from: number, reply: Message, now: Reading): void {
    const query = this.#open.get(reply.slot);
    const position = query?.cell.members.indexOf(from) ?? -1;
    if (query === undefined || position === -1) return;
    const bit = 1 << position;
    if ((query.answers & bit) !== 0) return;
    query.answers |= bit;
    const order = reply.leaseNumber - query.leaseNumber || reply.leaseSequence - query.leaseSequence;
    const tells = reply.leaseState !== LeaseState.none;
    const sameOwner = query.leaseOwner === reply.leaseOwner;
    if (tells && (query.leaseState === LeaseState.none || order > 0)) {
      query.same = 1;
      query.leaseState = reply.leaseState;
      query.leaseOwner = reply.leaseOwner;
      query.leaseNumber = reply.leaseNumber;
      query.leaseSequence = reply.leaseSequence;
      query.leaseUntil = reply.leaseUntil;
      query.leaseToken = reply.leaseToken;
    } else if (tells && order === 0 && sameOwner && query.leaseState === reply.leaseState) {
      query.same += 1;
    }
    if (sizeOf(query.answers) >= query.cell.majority) this.#close(query, true, now);
  }

  tick(now: Reading): void {
    for (;;) {
      const query = this.#deadlines.popDue(now.mono);
      if (query === undefined) return;
      this.#close(query, false, now);
    }
  }

  #close(query: Query, answered: boolean, now: Reading): void {
    this.#open.delete(query.handle);
    this.#deadlines.cancel(query);
    const unfinished = query.leaseState === LeaseState.live;
    query.done({
      answered,
      held: unfinished && now.lo < query.leaseUntil + this.#settings.maxClockSkewMs,
      confirmed: unfinished && query.same >= query.cell.majority,
      owner: query.leaseOwner,
      token: query.leaseToken,
      until: query.leaseUntil,
    });
  }
}
