import type { Reading } from "./clock.js";
import { Kind, Message } from "./message.js";
import type { RequestSink } from "./proposer-ports.js";
import type { FleaseSettings } from "./settings.js";
import { Operation, Phase } from "./slot.js";
import type { Slot } from "./slot.js";

/**
 * Sends a proposer's requests: one for each member of the resource's cell, through one reused message. In the
 * slot it keeps the ballots in which a tenure wrote before its present one, as a release names them all.
 */
export class Requests {
  readonly #settings: FleaseSettings;
  readonly #sink: RequestSink;
  readonly #out = new Message();
  owner: string;

  constructor(settings: FleaseSettings, owner: string, sink: RequestSink) {
    this.#settings = settings;
    this.#sink = sink;
    this.owner = owner;
  }

  /** READ, WRITE or ACQ in the ballot that the slot is in. */
  send(slot: Slot, kind: typeof Kind.read | typeof Kind.write | typeof Kind.acquire): void {
    const out = this.#fillHead(slot, kind, slot.number, slot.sequence);
    out.waiting = slot.waiting && slot.operation === Operation.acquire;
    out.renewing = slot.holding;
    out.until = slot.until;
    out.duration = slot.duration;
    out.token = slot.holding ? slot.token : slot.number;
    for (const member of slot.cell.members) this.#sink.send(member, out);
  }

  /** REL for one ballot. `sequence` is above that of its last write, so a copy of that write is stale. */
  release(slot: Slot, number: number, sequence: number): void {
    const out = this.#fillHead(slot, Kind.release, number, sequence);
    for (const member of slot.cell.members) this.#sink.send(member, out);
  }

  /** One REL for each ballot of the tenure, best effort. */
  releaseTenure(slot: Slot, now: Reading): void {
    if (slot.holdNumber !== 0) this.release(slot, slot.holdNumber, slot.holdSequence + 1);
    for (const past of slot.pastBallots) {
      if (this.#mayLive(past.until, now)) this.release(slot, past.number, past.sequence + 1);
    }
  }

  /** A renewal has been decided in a ballot of its own, which replaces that of the hold. */
  keepReplaced(slot: Slot, now: Reading): void {
    if (slot.number !== slot.holdNumber)
      this.#keepPast(slot, slot.holdNumber, slot.holdSequence, slot.holdUntil, now);
  }

  /** Keeps a ballot for the release, and drops those whose leases are over, so that the list stays short. */
  #keepPast(slot: Slot, number: number, sequence: number, until: number, now: Reading): void {
    slot.pastBallots = slot.pastBallots.filter((past) => this.#mayLive(past.until, now));
    slot.pastBallots.push({ number, sequence, until });
  }

  /**
   * A renewal in a ballot of its own is given up: its write may have got through, so the release must name it
   * too.
   */
  keepAbandoned(slot: Slot, now: Reading): void {
    if (slot.operation !== Operation.renew || slot.phase !== Phase.writing) return;
    if (slot.number === slot.holdNumber || slot.number === slot.pastBallots.at(-1)?.number) return;
    this.#keepPast(slot, slot.number, slot.sequence, slot.until, now);
  }

  #mayLive(until: number, now: Reading): boolean {
    return until + this.#settings.maxClockSkewMs > now.lo;
  }

  #fillHead(slot: Slot, kind: Kind, number: number, sequence: number): Message {
    const out = this.#out;
    out.kind = kind;
    out.view = this.#settings.view;
    out.slot = slot.index;
    out.resource = slot.resource;
    out.owner = this.owner;
    out.number = number;
    out.sequence = sequence;
    out.renewing = false;
    return out;
  }
}
