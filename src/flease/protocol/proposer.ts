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
import { Operation, Phase, InstanceTable } from "./instance.js";
import type { Instance } from "./instance.js";
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
  readonly #deadlines = new Deadlines<Instance>();
  #instances = new InstanceTable();
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
    return this.#instances.size;
  }

  instanceOf(resource: string): Instance | undefined {
    return this.#instances.of(resource);
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
  ): Instance {
    if (this.#instances.of(resource) !== undefined)
      throw new Error(`assertion failed: ${resource} is in use here`);
    const instance = this.#instances.take(resource, this.#cells.of(resource));
    instance.operation = Operation.acquire;
    instance.ttl = ttlMs;
    instance.giveUpAt = now.mono + giveUpInMs;
    instance.tries = 0;
    instance.heardMajority = false;
    instance.lastRefusal = Refusal.none;
    instance.waiting = waiting;
    if (fast) this.#startFast(instance, now);
    else this.#startReading(instance, now);
    return instance;
  }

  /** Ends an acquisition under way; what it may have left behind is withdrawn. */
  cancel(instance: Instance): void {
    if (instance.operation === Operation.acquire) this.#giveUp(instance, "cancelled");
  }

  /** Begins a renewal of a hold: in one round trip if its ballot still allows that, else in two. */
  renew(instance: Instance, ttlMs: number, now: Reading): void {
    if (instance.operation !== Operation.none || !this.isHeld(instance, now)) {
      this.#outcomes.renewed(instance, false);
      return;
    }
    instance.operation = Operation.renew;
    instance.ttl = ttlMs;
    instance.tries = 0;
    instance.giveUpAt = instance.holdExpiresMonoMs;
    if (instance.renewable) {
      // Nobody's ballot lies between (N, s) and (N, s + 1), so no READ is needed.
      instance.number = instance.holdNumber;
      instance.sequence = ++instance.holdSequence;
      this.#write(instance, Kind.write, now);
    } else {
      this.#startReading(instance, now);
    }
  }

  /**
   * Gives the resource back, or lays down a lapsed tenure. In this order (MUST): the hold ends, its ballots
   * are closed, and only then do the acceptors hear of it.
   */
  release(instance: Instance, now: Reading): void {
    const renewing = instance.operation === Operation.renew;
    this.#requests.keepAbandoned(instance, now);
    instance.holding = false;
    this.#close(instance);
    this.#requests.releaseTenure(instance, now);
    this.#instances.give(instance);
    if (renewing) this.#outcomes.renewed(instance, false);
  }

  /**
   * The holder rule (3.6): evaluated at each use. The first look at a lapsed hold ends the tenure for good.
   */
  isHeld(instance: Instance, now: Reading): boolean {
    if (!instance.holding) return false;
    if (holdIsValid(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, now)) return true;
    this.#requests.keepAbandoned(instance, now);
    if (now.mono + granularityMs < instance.holdExpiresMonoMs) instance.letRunOut(); // A wall clock that jumped ahead.
    this.#lapse(instance, now.clocksDisagree ? "clock-fault" : instance.barred ? "barred" : "expired");
    return false;
  }

  /** Milliseconds for which the hold can be trusted; 0 when there is none. */
  remainingMs(instance: Instance, now: Reading): number {
    return this.isHeld(instance, now)
      ? validForMs(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, now)
      : 0;
  }

  /**
   * A clock fault (3.2, 3.10): all holds and attempts are dropped, and the proposer goes on as another owner.
   * Nothing is released, as the program has not stopped yet; what the old owner left at acceptors runs out.
   */
  restart(owner: string): void {
    this.#requests.owner = owner;
    // A clock that ran ahead must not keep ballots there; as numbers may repeat, handles must not.
    this.#ballots = new BallotSource();
    this.#instances.retire();
    for (const instance of this.#instances.values()) {
      if (instance.holding) {
        this.#lapse(instance, "clock-fault");
      } else if (instance.operation === Operation.acquire) {
        this.#close(instance);
        this.#instances.give(instance);
        this.#outcomes.failed(instance, "clock-fault");
      }
      instance.letRunOut();
    }
  }

  /** Handles a reply of the acceptor with index `from`. */
  receive(from: number, reply: Message, now: Reading): void {
    const instance = this.#instances.at(reply.instance);
    // Exactly this ballot and this write, or it is a reply to something that is closed (3.5).
    if (instance === undefined || instance.number !== reply.number || instance.sequence !== reply.sequence)
      return;
    const position = instance.cell.members.indexOf(from);
    if (instance.number === 0 || position === -1 || reply.view !== this.#settings.view) return;
    const bit = 1 << position;
    if (reply.kind === Kind.promise) this.#onPromise(instance, bit, reply, now);
    else if (reply.kind === Kind.ack) this.#onAck(instance, bit, now);
    else if (reply.kind === Kind.nack) this.#onNack(instance, bit, reply, now);
  }

  /** Does what has fallen due: time-outs of phases, and new tries after a back-off. */
  tick(now: Reading): void {
    for (;;) {
      const instance = this.#deadlines.popDue(now.mono);
      if (instance === undefined) return;
      if (instance.phase === Phase.backoff) this.#retry(instance, now);
      else if (instance.phase !== Phase.idle) this.#onTimeout(instance, now);
    }
  }

  #startFast(instance: Instance, now: Reading): void {
    this.#openBallot(instance, now);
    this.#write(instance, Kind.acquire, now);
  }

  /** Two phases: READ first, to learn every unfinished lease that a majority knows of (Algorithm 3). */
  #startReading(instance: Instance, now: Reading): void {
    this.#openBallot(instance, now);
    this.#startPhase(instance, Phase.reading, now);
    this.#requests.send(instance, Kind.read);
  }

  /** Until a refusal tells of a higher promise, a tenure may be renewed in this ballot in one round trip. */
  #openBallot(instance: Instance, now: Reading): void {
    instance.number = this.#ballots.next(now);
    instance.sequence = 0;
    instance.renewable = true;
  }

  #write(instance: Instance, kind: typeof Kind.write | typeof Kind.acquire, now: Reading): void {
    this.#startPhase(instance, kind === Kind.acquire ? Phase.fast : Phase.writing, now);
    instance.until = now.lo + instance.ttl;
    instance.duration = instance.ttl;
    if (instance.holding) {
      // A renewal must not end sooner than the hold that it renews, on either clock (3.5).
      instance.until = Math.max(instance.until, instance.holdExpiresWallMs);
      instance.duration = Math.max(instance.duration, instance.holdExpiresMonoMs - now.mono);
    }
    this.#requests.send(instance, kind);
  }

  #startPhase(instance: Instance, phase: Phase, now: Reading): void {
    instance.phase = phase;
    clearVotes(instance);
    instance.sentMono = now.mono;
    this.#deadlines.schedule(instance, now.mono + phaseTimeoutMs(instance, now, this.#settings));
  }

  #onPromise(instance: Instance, bit: number, reply: Message, now: Reading): void {
    if (instance.phase !== Phase.reading) return;
    countAck(instance, bit);
    noteReportedLease(instance, reply, this.owner, now, this.#settings);
    if (!hasMajority(instance)) return;
    this.#hear(instance, now);
    if (instance.blockedUntil > 0) {
      instance.blockedVotes = instance.cell.majority;
      this.#fail(instance, now);
    } else {
      this.#write(instance, Kind.write, now);
    }
  }

  #onAck(instance: Instance, bit: number, now: Reading): void {
    if (instance.phase !== Phase.writing && instance.phase !== Phase.fast) return;
    countAck(instance, bit);
    if (!hasMajority(instance)) return;
    this.#hear(instance, now);
    this.#decide(instance, now);
  }

  #onNack(instance: Instance, bit: number, reply: Message, now: Reading): void {
    if (reply.promised > instance.number) instance.renewable = false;
    this.#ballots.learn(reply.promised, now, this.#settings.maxClockSkewMs);
    if (instance.phase === Phase.idle || (instance.nacks & bit) !== 0) return;
    if (reply.refusal === Refusal.barred) instance.barred = true;
    instance.lastRefusal = reply.refusal;
    if (reply.refusal === Refusal.full) instance.fullBy = reply.fullBy;
    instance.nacks |= bit;
    if (reply.refusal === Refusal.held) {
      noteBlocker(instance, reply);
      instance.ahead = Math.max(instance.ahead, reply.ahead);
    }
    // Refusals are counted whenever they arrive; one alone decides nothing (repair F16).
    if (!majorityIsImpossible(instance)) return;
    this.#hear(instance, now);
    this.#fail(instance, now);
  }

  #onTimeout(instance: Instance, now: Reading): void {
    instance.blockedUntil = 0; // The word of a minority: the next try may succeed without it.
    this.#fail(instance, now);
  }

  /** A majority has answered, whatever it said. */
  #hear(instance: Instance, now: Reading): void {
    instance.heardMajority = true;
    this.#pacing.measure(now.mono - instance.sentMono);
  }

  /** The holder rule (3.6), at the last acknowledgement that was missing. */
  #decide(instance: Instance, now: Reading): void {
    const end = instance.sentMono + instance.duration;
    if (!holdIsValid(instance.until, end, now)) {
      this.#fail(instance, now); // Decided when it was over already (repair F9).
    } else if (instance.operation === Operation.acquire) {
      instance.holding = true;
      instance.token = instance.number;
      instance.holdExpiresWallMs = instance.until;
      instance.holdExpiresMonoMs = end;
      this.#adoptBallot(instance);
      this.#outcomes.acquired(instance);
    } else if (this.isHeld(instance, now)) {
      this.#requests.keepReplaced(instance, now);
      instance.holdExpiresWallMs = Math.max(instance.holdExpiresWallMs, instance.until);
      instance.holdExpiresMonoMs = Math.max(instance.holdExpiresMonoMs, end);
      this.#adoptBallot(instance);
      this.#outcomes.renewed(instance, true);
    }
  }

  #adoptBallot(instance: Instance): void {
    instance.holdNumber = instance.number;
    instance.holdSequence = instance.sequence;
    instance.barred = false;
    this.#finish(instance);
  }

  /** The try under way came to nothing. */
  #fail(instance: Instance, now: Reading): void {
    instance.tries += 1;
    if (instance.operation === Operation.renew) {
      this.#failRenewal(instance, now);
      return;
    }
    this.#withdraw(instance);
    if (instance.blockedUntil > 0 && (isBlockedByMajority(instance) || instance.tries >= splitTriesMax)) {
      const retryInMs = this.#pacing.retryInMs(instance, now, this.#settings);
      this.#close(instance);
      this.#instances.give(instance);
      this.#outcomes.refused(instance, instance.blockedBy, retryInMs);
    } else if (instance.lastRefusal === Refusal.busy && majorityIsImpossible(instance)) {
      this.#giveUp(instance, "busy"); // A pause of a few round trips would not be enough.
    } else if (instance.barred && majorityIsImpossible(instance)) {
      this.#giveUp(instance, "barred"); // Trying again soon is useless: the bar outlives the lease.
    } else if (instance.lastRefusal === Refusal.full && majorityIsImpossible(instance)) {
      this.#giveUp(instance, "full"); // The waist tries again, if its caller waits, and not at once.
    } else if (now.mono >= instance.giveUpAt) {
      this.#giveUp(instance, whyFailed(instance));
    } else {
      this.#backOff(instance, now);
    }
  }

  /**
   * An abandoned renewal is not released while its hold exists (MUST): the acceptors' guard is what protects
   * it.
   */
  #failRenewal(instance: Instance, now: Reading): void {
    instance.renewable = false;
    this.#requests.keepAbandoned(instance, now);
    if (!this.isHeld(instance, now)) return; // The look has ended the tenure and its renewal, and said so.
    if (instance.tries < renewalTriesMax) {
      this.#startReading(instance, now);
    } else {
      this.#finish(instance);
      this.#outcomes.renewed(instance, false);
    }
  }

  #giveUp(instance: Instance, why: AttemptFailure): void {
    this.#withdraw(instance);
    this.#close(instance);
    this.#instances.give(instance);
    this.#outcomes.failed(instance, why);
  }

  #lapse(instance: Instance, why: Lapse): void {
    instance.holding = false;
    const renewing = instance.operation === Operation.renew;
    this.#close(instance);
    if (renewing) this.#outcomes.renewed(instance, false);
    this.#outcomes.lapsed(instance, why);
  }

  #backOff(instance: Instance, now: Reading): void {
    instance.phase = Phase.backoff;
    instance.number = 0;
    this.#deadlines.schedule(
      instance,
      Math.min(now.mono + this.#pacing.backoffMs(instance), instance.giveUpAt),
    );
  }

  #retry(instance: Instance, now: Reading): void {
    if (now.mono >= instance.giveUpAt) this.#giveUp(instance, whyFailed(instance));
    else this.#startReading(instance, now);
  }

  /** The operation is over and its ballot stays that of the hold. */
  #finish(instance: Instance): void {
    instance.operation = Operation.none;
    instance.phase = Phase.idle;
    this.#deadlines.cancel(instance);
  }

  /** The operation is over and late acknowledgements of its ballot are ignored for ever. */
  #close(instance: Instance): void {
    this.#finish(instance);
    instance.number = 0;
  }

  /** Withdraws an acquisition's write, whose outcome is unknown. There is no hold, so it may. */
  #withdraw(instance: Instance): void {
    if (instance.phase !== Phase.fast && instance.phase !== Phase.writing) return;
    this.#requests.release(instance, instance.number, instance.sequence + 1);
    instance.phase = Phase.idle;
  }

  clone(sink: ProposerSink): Proposer {
    const copy = new Proposer(this.#settings, this.owner, 0, sink, sink);
    copy.#instances = this.#instances.clone();
    copy.#ballots = this.#ballots.clone();
    copy.#pacing = this.#pacing.clone();
    const waiting = [...this.#instances.values()].filter((instance) => instance.heapIndex !== -1);
    waiting.sort((left, right) => left.heapSequence - right.heapSequence);
    for (const instance of waiting)
      copy.#deadlines.schedule(copy.#instances.at(instance.index)!, instance.dueMs);
    return copy;
  }

  /**
   * Feeds the whole state into `hash`. Two proposers that hash alike behave alike. The explorer,
   * which decides when retries happen, leaves out their pace: it decides nothing else.
   */
  hashInto(hash: StateHash, withPacing = true): void {
    hash.text(this.owner).number(this.#ballots.last).number(this.#ballots.seen);
    if (withPacing) this.#pacing.hashInto(hash);
    const sorted = [...this.#instances.values()].sort((left, right) => left.index - right.index);
    for (const instance of sorted) instance.hashInto(hash);
  }
}
