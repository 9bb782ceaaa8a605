import type { DeadlineItem } from "../../common/deadlines.js";
import { Deadlines } from "../../common/deadlines.js";
import { Cells } from "./cells.js";
import type { CellMap } from "./cells.js";
import type { Reading } from "./clock.js";
import { Kind, LeaseState, Message } from "./message.js";
import { isQuorum } from "./quorum.js";
import type { Cell } from "./quorum.js";
import type { FleaseSettings } from "./settings.js";

/**
 * The state of a resource as reported by a majority, or by fewer members. A hint: the lease may have been
 * released or renewed meanwhile (3.9).
 */
export interface QueryAnswer {
  /** False when fewer than a majority answered in time. */
  readonly answered: boolean;
  readonly held: boolean;
  /** The whole majority reported the same unfinished lease. */
  readonly confirmed: boolean;
  readonly owner: string;
  readonly token: number;
  /** When the lease ends on the wall clock; it may block others up to ε longer. */
  readonly until: number;
}

/** One acceptor's report of the lease that it knows. */
interface Report {
  readonly state: LeaseState;
  readonly owner: string;
  readonly number: number;
  readonly sequence: number;
  readonly until: number;
  readonly token: number;
}

class Query implements DeadlineItem {
  answers = 0;
  /** Counted among the acceptors that know of a lease. */
  readonly reports: Report[] = [];
  heapIndex = -1;
  readonly handle: number;
  readonly cell: Cell;
  readonly done: (answer: QueryAnswer) => void;

  constructor(handle: number, cell: Cell, done: (answer: QueryAnswer) => void) {
    this.handle = handle;
    this.cell = cell;
    this.done = done;
  }

  get answered(): boolean {
    return isQuorum(this.cell, this.answers);
  }

  /** How many acceptors reported exactly this lease. */
  votesFor(lease: Report): number {
    return this.reports.filter(
      (one) => isSameBallot(one, lease) && one.sequence === lease.sequence && one.state === lease.state,
    ).length;
  }

  /**
   * The unfinished lease with the highest ballot; `undefined` when there is none. A finished lease with a
   * higher ballot may be an attempt that a minority accepted and that was withdrawn, so it hides only leases
   * of its own ballot.
   */
  holding(): Report | undefined {
    return this.reports
      .filter((lease) => lease.state === LeaseState.live && !this.#isEnded(lease))
      .reduce<Report | undefined>((one, other) => (one && !isHigher(other, one) ? one : other), undefined);
  }

  #isEnded(lease: Report): boolean {
    return this.reports.some(
      (one) => one.state !== LeaseState.live && isSameBallot(one, lease) && isHigher(one, lease),
    );
  }
}

const nothing: Report = { state: LeaseState.none, owner: "", number: 0, sequence: 0, until: 0, token: 0 };

function isHigher(one: Report, other: Report): boolean {
  return one.number > other.number || (one.number === other.number && one.sequence > other.sequence);
}

function isSameBallot(one: Report, other: Report): boolean {
  return one.number === other.number && one.owner === other.owner;
}

/**
 * Queries who holds a resource (3.9): all acceptors of its cell are asked. Among the answers of a majority an
 * unfinished lease ranks before a finished one, and then the highest ballot wins. A query changes nothing and
 * writes nothing back (repair F8), and the protocol never relies on its answer.
 */
export class Queries {
  readonly #settings: FleaseSettings;
  #cells: CellMap;
  #view: number;
  readonly #send: (to: number, message: Message) => void;
  readonly #open = new Map<number, Query>();
  readonly #deadlines = new Deadlines<Query>();
  readonly #out = new Message();
  #lastHandle = 0;

  constructor(settings: FleaseSettings, send: (to: number, message: Message) => void) {
    this.#settings = settings;
    this.#send = send;
    this.#cells = new Cells(settings.members, settings.cellSize);
    this.#view = settings.view;
  }

  get nextDueMono(): number {
    return this.#deadlines.nextDueMs();
  }

  /** Queries begun in the former view are answered by its cells (3.14). */
  enterView(view: number, cells: CellMap): void {
    this.#view = view;
    this.#cells = cells;
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
    out.view = this.#view;
    out.instance = handle;
    out.resource = resource;
    out.owner = owner;
    out.number = 0;
    out.sequence = 0;
    for (const member of query.cell.members) this.#send(member, out);
  }

  receive(from: number, reply: Message, now: Reading): void {
    const query = this.#open.get(reply.instance);
    const position = query?.cell.members.indexOf(from) ?? -1;
    if (query === undefined || position === -1) return;
    const bit = 1 << position;
    if ((query.answers & bit) !== 0) return;
    query.answers |= bit;
    if (reply.leaseState !== LeaseState.none) {
      query.reports.push({
        state: reply.leaseState,
        owner: reply.leaseOwner,
        number: reply.leaseNumber,
        sequence: reply.leaseSequence,
        until: reply.leaseExpiresWallMs,
        token: reply.leaseToken,
      });
    }
    if (query.answered) this.#close(query, now);
  }

  tick(now: Reading): void {
    for (;;) {
      const query = this.#deadlines.popDue(now.mono);
      if (query === undefined) return;
      this.#close(query, now);
    }
  }

  /** Ends all pending queries with the answers so far. */
  closeAll(now: Reading): void {
    for (const query of this.#open.values()) this.#close(query, now);
  }

  #close(query: Query, now: Reading): void {
    this.#open.delete(query.handle);
    this.#deadlines.cancel(query);
    const lease = query.holding();
    const { owner, token, until } = lease ?? nothing;
    query.done({
      answered: query.answered,
      held: lease !== undefined && now.lo < until + this.#settings.maxClockSkewMs,
      confirmed: lease !== undefined && query.votesFor(lease) >= query.cell.majority,
      owner,
      token,
      until,
    });
  }
}
