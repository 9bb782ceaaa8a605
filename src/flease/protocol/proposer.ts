import { Deadlines } from "../../common/deadlines.js";
import { BallotSource } from "./ballot-source.js";
import { Cells } from "./cells.js";
import type { Reading } from "./clock.js";
import { holdIsValid, validForMs } from "./expiry.js";
import { Kind, Refusal } from "./message.js";
import type { Message } from "./message.js";
import { Pacing, phaseTimeoutMs } from "./pacing.js";
import type { Lapse, ProposerOutcomes, ProposerSink, RequestSink, AttemptFailure } from "./proposer-ports.js";
import { Requests } from "./requests.js";
import { granularityMs, type FleaseSettings } from "./settings.js";
import { Operation, Phase, SlotTable } from "./slot.js";
import type { Slot } from "./slot.js";
import type { StateHash } from "./state-hash.js";
import {
  clearVotes,
  countAck,
  hasMajority,
  isBlockedByMajority,
  majorityIsImpossible,
  noteBlocker,
  noteReportedLease,
  whyFailed,
} from "./votes.js";

/** Tries in one renewal, the first in one round trip and the second in two; the waist asks again. */
const renewalTriesMax = 2;

/**
 * Tries of an acquisition that found the votes split among several before it believes that the resource is
 * held.
 */
const splitTriesMax = 6;

/**
 * The proposer of sections 3.5 and 3.6: the report's Algorithms 2 (read and write on a majority), 3 (acquire)
 * and 4 (GetLease), with their repairs. It never reads a clock and never sets a timer: every call brings a
 * reading, and `nextDueMono` says when it wants to be woken.
 */
export class Proposer {
  readonly #settings: FleaseSettings;
  #outcomes: ProposerOutcomes;
  readonly #cells: Cells;
  readonly #deadlines = new Deadlines<Slot>();
  #slots = new SlotTable();
  #ballots = new BallotSource();
  #pacing: Pacing;
  readonly #requests: Requests;

  constructor(
    settings: FleaseSettings,
    owner: string,
    seed: number,
    requests: RequestSink,
    outcomes: ProposerOutcomes,
  ) {
    this.#settings = settings;
    this.#outcomes = outcomes;
    this.#requests = new Requests(settings, owner, requests);
    this.#pacing = new Pacing(seed);
    this.#cells = new Cells(settings.members, settings.cellSize);
  }

  /** From now on the outcomes of operations are told to these. */
  attach(outcomes: ProposerOutcomes): void {
    this.#outcomes = outcomes;
  }

  get owner(): string {
    return this.#requests.owner;
  }

  /** When `tick` has something to do, on the steady clock; `Infinity` when never. */
  get nextDueMono(): number {
    return this.#deadlines.nextDueMs();
  }

  /** Number of operations and holds. */
  get size(): number {
    return this.#slots.size;
  }

  slotOf(resource: string): Slot | undefined {
    return this.#slots.of(resource);
  }

  /**
   * Begins an acquisition. `fast` tries one round trip first; use it only without a recent sign of
   * contention. The resource must have no operation and no hold here: within one proposer callers queue
   * (3.3). With `waiting` the acceptors that refuse it put it on their lists of those to tell of a release.
   */
  acquire(
    resource: string,
    ttlMs: number,
    giveUpInMs: number,
    fast: boolean,
    now: Reading,
    waiting = false,
  ): Slot {
    if (this.#slots.of(resource) !== undefined)
      throw new Error(`assertion failed: ${resource} is in use here`);
    const slot = this.#slots.take(resource, this.#cells.of(resource));
    slot.operation = Operation.acquire;
    slot.ttl = ttlMs;
    slot.giveUpAt = now.mono + giveUpInMs;
    slot.tries = 0;
    slot.heardMajority = false;
    slot.lastRefusal = Refusal.none;
    slot.waiting = waiting;
    if (fast) this.#startFast(slot, now);
    else this.#startReading(slot, now);
    return slot;
  }

  /** Ends an acquisition under way; what it may have left behind is withdrawn. */
  cancel(slot: Slot): void {
    if (slot.operation === Operation.acquire) this.#giveUp(slot, "cancelled");
  }

  /** Begins a renewal of a hold: in one round trip if its ballot still allows that, else in two. */
  renew(slot: Slot, ttlMs: number, now: Reading): void {
    if (slot.operation !== Operation.none || !this.isHeld(slot, now)) {
      this.#outcomes.renewed(slot, false);
      return;
    }
    slot.operation = Operation.renew;
    slot.ttl = ttlMs;
    slot.tries = 0;
    slot.giveUpAt = slot.holdEnd;
    if (slot.renewable) {
      // Nobody's ballot lies between (N, s) and (N, s + 1), so no READ is needed.
      slot.number = slot.holdNumber;
      slot.sequence = ++slot.holdSequence;
      this.#write(slot, Kind.write, now);
    } else {
      this.#startReading(slot, now);
    }
  }

  /**
   * Gives the resource back, or lays down a lapsed tenure. In this order (MUST): the hold ends, its ballots
   * are closed, and only then do the acceptors hear of it.
   */
  release(slot: Slot, now: Reading): void {
    const renewing = slot.operation === Operation.renew;
    this.#requests.keepAbandoned(slot, now);
    slot.holding = false;
    this.#close(slot);
    this.#requests.releaseTenure(slot, now);
    this.#slots.give(slot);
    if (renewing) this.#outcomes.renewed(slot, false);
  }

  /**
   * The holder rule (3.6): evaluated at each use. The first look at a lapsed hold ends the tenure for good.
   */
  isHeld(slot: Slot, now: Reading): boolean {
    if (!slot.holding) return false;
    if (holdIsValid(slot.holdUntil, slot.holdEnd, now)) return true;
    this.#requests.keepAbandoned(slot, now);
    if (now.mono + granularityMs < slot.holdEnd) slot.letRunOut(); // A wall clock that jumped ahead.
    this.#lapse(slot, now.clocksDisagree ? "clock-fault" : slot.barred ? "barred" : "expired");
    return false;
  }

  /** Milliseconds for which the hold can be trusted; 0 when there is none. */
  remainingMs(slot: Slot, now: Reading): number {
    return this.isHeld(slot, now) ? validForMs(slot.holdUntil, slot.holdEnd, now) : 0;
  }

  /**
   * A clock fault (3.2, 3.10): all holds and attempts are dropped, and the proposer goes on as another owner.
   * Nothing is released, as the program has not stopped yet; what the old owner left at acceptors runs out.
   */
  restart(owner: string): void {
    this.#requests.owner = owner;
    // A clock that ran ahead must not keep ballots there; as numbers may repeat, handles must not.
    this.#ballots = new BallotSource();
    this.#slots.retire();
    for (const slot of this.#slots.values()) {
      if (slot.holding) {
        this.#lapse(slot, "clock-fault");
      } else if (slot.operation === Operation.acquire) {
        this.#close(slot);
        this.#slots.give(slot);
        this.#outcomes.failed(slot, "clock-fault");
      }
      slot.letRunOut();
    }
  }

  /** Handles a reply of the acceptor with index `from`. */
  receive(from: number, reply: Message, now: Reading): void {
    const slot = this.#slots.at(reply.slot);
    // Exactly this ballot and this write, or it is a reply to something that is closed (3.5).
    if (slot === undefined || slot.number !== reply.number || slot.sequence !== reply.sequence) return;
    const position = slot.cell.members.indexOf(from);
    if (slot.number === 0 || position === -1 || reply.view !== this.#settings.view) return;
    const bit = 1 << position;
    if (reply.kind === Kind.promise) this.#onPromise(slot, bit, reply, now);
    else if (reply.kind === Kind.ack) this.#onAck(slot, bit, now);
    else if (reply.kind === Kind.nack) this.#onNack(slot, bit, reply, now);
  }

  /** Does what has fallen due: time-outs of phases, and new tries after a back-off. */
  tick(now: Reading): void {
    for (;;) {
      const slot = this.#deadlines.popDue(now.mono);
      if (slot === undefined) return;
      if (slot.phase === Phase.backoff) this.#retry(slot, now);
      else if (slot.phase !== Phase.idle) this.#onTimeout(slot, now);
    }
  }

  #startFast(slot: Slot, now: Reading): void {
    this.#openBallot(slot, now);
    this.#write(slot, Kind.acquire, now);
  }

  /** Two phases: READ first, to learn every unfinished lease that a majority knows of (Algorithm 3). */
  #startReading(slot: Slot, now: Reading): void {
    this.#openBallot(slot, now);
    this.#startPhase(slot, Phase.reading, now);
    this.#requests.send(slot, Kind.read);
  }

  /** Until a refusal tells of a higher promise, a tenure may be renewed in this ballot in one round trip. */
  #openBallot(slot: Slot, now: Reading): void {
    slot.number = this.#ballots.next(now);
    slot.sequence = 0;
    slot.renewable = true;
  }

  #write(slot: Slot, kind: typeof Kind.write | typeof Kind.acquire, now: Reading): void {
    this.#startPhase(slot, kind === Kind.acquire ? Phase.fast : Phase.writing, now);
    slot.until = now.lo + slot.ttl;
    slot.duration = slot.ttl;
    if (slot.holding) {
      // A renewal must not end sooner than the hold that it renews, on either clock (3.5).
      slot.until = Math.max(slot.until, slot.holdUntil);
      slot.duration = Math.max(slot.duration, slot.holdEnd - now.mono);
    }
    this.#requests.send(slot, kind);
  }

  #startPhase(slot: Slot, phase: Phase, now: Reading): void {
    slot.phase = phase;
    clearVotes(slot);
    slot.sentMono = now.mono;
    this.#deadlines.schedule(slot, now.mono + phaseTimeoutMs(slot, now, this.#settings));
  }

  #onPromise(slot: Slot, bit: number, reply: Message, now: Reading): void {
    if (slot.phase !== Phase.reading) return;
    countAck(slot, bit);
    noteReportedLease(slot, reply, this.owner, now, this.#settings);
    if (!hasMajority(slot)) return;
    this.#hear(slot, now);
    if (slot.blockedUntil > 0) {
      slot.blockedVotes = slot.cell.majority;
      this.#fail(slot, now);
    } else {
      this.#write(slot, Kind.write, now);
    }
  }

  #onAck(slot: Slot, bit: number, now: Reading): void {
    if (slot.phase !== Phase.writing && slot.phase !== Phase.fast) return;
    countAck(slot, bit);
    if (!hasMajority(slot)) return;
    this.#hear(slot, now);
    this.#decide(slot, now);
  }

  #onNack(slot: Slot, bit: number, reply: Message, now: Reading): void {
    if (reply.promised > slot.number) slot.renewable = false;
    this.#ballots.learn(reply.promised, now, this.#settings.maxClockSkewMs);
    if (slot.phase === Phase.idle || (slot.nacks & bit) !== 0) return;
    if (reply.refusal === Refusal.barred) slot.barred = true;
    slot.lastRefusal = reply.refusal;
    if (reply.refusal === Refusal.full) slot.fullBy = reply.fullBy;
    slot.nacks |= bit;
    if (reply.refusal === Refusal.held) {
      noteBlocker(slot, reply);
      slot.ahead = Math.max(slot.ahead, reply.ahead);
    }
    // Refusals are counted whenever they arrive; one alone decides nothing (repair F16).
    if (!majorityIsImpossible(slot)) return;
    this.#hear(slot, now);
    this.#fail(slot, now);
  }

  #onTimeout(slot: Slot, now: Reading): void {
    slot.blockedUntil = 0; // The word of a minority: the next try may succeed without it.
    this.#fail(slot, now);
  }

  /** A majority has answered, whatever it said. */
  #hear(slot: Slot, now: Reading): void {
    slot.heardMajority = true;
    this.#pacing.measure(now.mono - slot.sentMono);
  }

  /** The holder rule (3.6), at the last acknowledgement that was missing. */
  #decide(slot: Slot, now: Reading): void {
    const end = slot.sentMono + slot.duration;
    if (!holdIsValid(slot.until, end, now)) {
      this.#fail(slot, now); // Decided when it was over already (repair F9).
    } else if (slot.operation === Operation.acquire) {
      slot.holding = true;
      slot.token = slot.number;
      slot.holdUntil = slot.until;
      slot.holdEnd = end;
      this.#adoptBallot(slot);
      this.#outcomes.acquired(slot);
    } else if (this.isHeld(slot, now)) {
      this.#requests.keepReplaced(slot, now);
      slot.holdUntil = Math.max(slot.holdUntil, slot.until);
      slot.holdEnd = Math.max(slot.holdEnd, end);
      this.#adoptBallot(slot);
      this.#outcomes.renewed(slot, true);
    }
  }

  #adoptBallot(slot: Slot): void {
    slot.holdNumber = slot.number;
    slot.holdSequence = slot.sequence;
    slot.barred = false;
    this.#finish(slot);
  }

  /** The try under way came to nothing. */
  #fail(slot: Slot, now: Reading): void {
    slot.tries += 1;
    if (slot.operation === Operation.renew) {
      this.#failRenewal(slot, now);
      return;
    }
    this.#withdraw(slot);
    if (slot.blockedUntil > 0 && (isBlockedByMajority(slot) || slot.tries >= splitTriesMax)) {
      const retryInMs = this.#pacing.retryInMs(slot, now, this.#settings);
      this.#close(slot);
      this.#slots.give(slot);
      this.#outcomes.refused(slot, slot.blockedBy, retryInMs);
    } else if (slot.lastRefusal === Refusal.busy && majorityIsImpossible(slot)) {
      this.#giveUp(slot, "busy"); // A pause of a few round trips would not be enough.
    } else if (slot.barred && majorityIsImpossible(slot)) {
      this.#giveUp(slot, "barred"); // Trying again soon is useless: the bar outlives the lease.
    } else if (slot.lastRefusal === Refusal.full && majorityIsImpossible(slot)) {
      this.#giveUp(slot, "full"); // The waist tries again, if its caller waits, and not at once.
    } else if (now.mono >= slot.giveUpAt) {
      this.#giveUp(slot, whyFailed(slot));
    } else {
      this.#backOff(slot, now);
    }
  }

  /**
   * An abandoned renewal is not released while its hold exists (MUST): the acceptors' guard is what protects
   * it.
   */
  #failRenewal(slot: Slot, now: Reading): void {
    slot.renewable = false;
    this.#requests.keepAbandoned(slot, now);
    if (!this.isHeld(slot, now)) return; // The look has ended the tenure and its renewal, and said so.
    if (slot.tries < renewalTriesMax) {
      this.#startReading(slot, now);
    } else {
      this.#finish(slot);
      this.#outcomes.renewed(slot, false);
    }
  }

  #giveUp(slot: Slot, why: AttemptFailure): void {
    this.#withdraw(slot);
    this.#close(slot);
    this.#slots.give(slot);
    this.#outcomes.failed(slot, why);
  }

  #lapse(slot: Slot, why: Lapse): void {
    slot.holding = false;
    const renewing = slot.operation === Operation.renew;
    this.#close(slot);
    if (renewing) this.#outcomes.renewed(slot, false);
    this.#outcomes.lapsed(slot, why);
  }

  #backOff(slot: Slot, now: Reading): void {
    slot.phase = Phase.backoff;
    slot.number = 0;
    this.#deadlines.schedule(slot, Math.min(now.mono + this.#pacing.backoffMs(slot), slot.giveUpAt));
  }

  #retry(slot: Slot, now: Reading): void {
    if (now.mono >= slot.giveUpAt) this.#giveUp(slot, whyFailed(slot));
    else this.#startReading(slot, now);
  }

  /** The operation is over and its ballot stays that of the hold. */
  #finish(slot: Slot): void {
    slot.operation = Operation.none;
    slot.phase = Phase.idle;
    this.#deadlines.cancel(slot);
  }

  /** The operation is over and late acknowledgements of its ballot are ignored for ever. */
  #close(slot: Slot): void {
    this.#finish(slot);
    slot.number = 0;
  }

  /** Withdraws an acquisition's write, whose outcome is unknown. There is no hold, so it may. */
  #withdraw(slot: Slot): void {
    if (slot.phase !== Phase.fast && slot.phase !== Phase.writing) return;
    this.#requests.release(slot, slot.number, slot.sequence + 1);
    slot.phase = Phase.idle;
  }

  clone(sink: ProposerSink): Proposer {
    const copy = new Proposer(this.#settings, this.owner, 0, sink, sink);
    copy.#slots = this.#slots.clone();
    copy.#ballots = this.#ballots.clone();
    copy.#pacing = this.#pacing.clone();
    const waiting = [...this.#slots.values()].filter((slot) => slot.heapIndex !== -1);
    waiting.sort((left, right) => left.heapSequence - right.heapSequence);
    for (const slot of waiting) copy.#deadlines.schedule(copy.#slots.at(slot.index)!, slot.dueMs);
    return copy;
  }

  /**
   * Feeds the whole state into `hash`. Two proposers that hash alike behave alike. The explorer,
   * which decides when retries happen, leaves out their pace: it decides nothing else.
   */
  hashInto(hash: StateHash, withPacing = true): void {
    hash.text(this.owner).number(this.#ballots.last).number(this.#ballots.seen);
    if (withPacing) this.#pacing.hashInto(hash);
    const sorted = [...this.#slots.values()].sort((left, right) => left.index - right.index);
    for (const slot of sorted) slot.hashInto(hash);
  }
}
