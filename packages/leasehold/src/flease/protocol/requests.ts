import type { Reading } from "./clock.js";
import { Cells } from "./cells.js";
import type { CellMap } from "./cells.js";
import { Kind, Message } from "./message.js";
import type { RequestSink } from "./proposer-ports.js";
import type { FleaseSettings } from "./settings.js";
import { OperationKind, Phase } from "./instance.js";
import type { Instance, Operation } from "./instance.js";
import { majorityAnswered, majorityIsImpossible } from "./votes.js";

/**
 * Sends a proposer's requests, one to each member of the resource's cell, through one reused message. It
 * records in the instance the ballots in which a tenure wrote before its present one, because a release names
 * them all.
 */
export class Requests {
  readonly #settings: FleaseSettings;
  readonly #sink: RequestSink;
  readonly #out = new Message();
  owner: string;
  /** The stamp and cells of the view that requests are made in. */
  view: number;
  cells: CellMap;

  constructor(settings: FleaseSettings, owner: string, sink: RequestSink) {
    this.#settings = settings;
    this.#sink = sink;
    this.owner = owner;
    this.view = settings.view;
    this.cells = new Cells(settings.members, settings.cellSize);
  }

  enterView(view: number, cells: CellMap): void {
    this.view = view;
    this.cells = cells;
  }

  /** READ, WRITE or ACQ in the operation's ballot. */
  send(operation: Operation, kind: typeof Kind.read | typeof Kind.write | typeof Kind.acquire): void {
    const { instance } = operation;
    const out = this.#fillHead(instance, kind, operation.number, operation.sequence);
    out.waiting = operation.waiting;
    out.renewing = instance.holding;
    out.until = operation.until;
    out.duration = operation.duration;
    out.token = instance.holding ? instance.tokenNumber : operation.number;
    for (const member of instance.cell.members) this.#sink.send(member, out);
  }

  /**
   * Whether no majority is possible any more: too many have refused, or all connected members have answered.
   * Otherwise, with only two members left, one refusal would cost a timeout.
   */
  isHopeless(operation: Operation): boolean {
    if (majorityIsImpossible(operation)) return true;
    if (!majorityAnswered(operation)) return false;
    const answered = operation.acks | operation.nacks;
    const { members } = operation.instance.cell;
    return members.every((member, at) => (answered & (1 << at)) !== 0 || !this.#sink.reaches(member));
  }

  /**
   * REL for one ballot. `sequence` is above that of the ballot's last write, so a duplicate of that write is
   * stale. With `waiting` it withdraws a failed write, and the sender keeps waiting.
   */
  release(instance: Instance, number: number, sequence: number, waiting = false): void {
    const out = this.#fillHead(instance, Kind.release, number, sequence);
    out.waiting = waiting;
    for (const member of instance.cell.members) this.#sink.send(member, out);
  }

  /** One REL for each ballot of the tenure, best effort. */
  releaseTenure(instance: Instance, now: Reading): void {
    if (instance.holdNumber !== 0) this.release(instance, instance.holdNumber, instance.holdSequence + 1);
    for (const past of instance.pastBallots) {
      if (this.#mayLive(past.until, now)) this.release(instance, past.number, past.sequence + 1);
    }
  }

  /** Records that a renewal was decided in a ballot of its own, which replaces the hold's ballot. */
  keepReplaced(instance: Instance, now: Reading): void {
    if (instance.operation.number !== instance.holdNumber)
      this.#keepPast(instance, instance.holdNumber, instance.holdSequence, instance.holdExpiresWallMs, now);
  }

  /**
   * Keeps a ballot for the release, and drops ballots whose leases are over, so that the list stays short.
   */
  #keepPast(instance: Instance, number: number, sequence: number, until: number, now: Reading): void {
    const live = instance.pastBallots.filter((past) => this.#mayLive(past.until, now));
    instance.pastBallots = [...live, { number, sequence, until }];
  }

  /**
   * Gives up a renewal in a ballot of its own. Its write may have arrived, so the release must name that
   * ballot too.
   */
  keepAbandoned(instance: Instance, now: Reading): void {
    const { kind, phase, number, sequence, until } = instance.operation;
    if (kind !== OperationKind.renew || phase !== Phase.writing) return;
    if (number === instance.holdNumber || number === instance.pastBallots.at(-1)?.number) return;
    this.#keepPast(instance, number, sequence, until, now);
  }

  #mayLive(until: number, now: Reading): boolean {
    return until + this.#settings.maxClockSkewMs > now.lo;
  }

  #fillHead(instance: Instance, kind: Kind, number: number, sequence: number): Message {
    const out = this.#out;
    out.kind = kind;
    out.view = this.view;
    out.instance = instance.index;
    out.resource = instance.resource;
    out.owner = this.owner;
    out.number = number;
    out.sequence = sequence;
    out.renewing = false;
    return out;
  }
}
