import { Deadlines } from "../../common/deadlines.js";
import { BallotSource } from "./ballot-source.js";
import type { CellMap } from "./cells.js";
import type { Reading } from "./clock.js";
import { holdIsValid, validForMs } from "./expiry.js";
import { Kind, Refusal } from "./message.js";
import type { Message } from "./message.js";
import { Pacing, phaseTimeoutMs } from "./pacing.js";
import type { Lapse, ProposerOutcomes, ProposerSink, RequestSink, AttemptFailure } from "./proposer-ports.js";
import { Requests } from "./requests.js";
import { granularityMs, type FleaseSettings } from "./settings.js";
import { OperationKind, Phase, InstanceTable } from "./instance.js";
import type { Instance, Operation } from "./instance.js";
import type { StateHash } from "./state-hash.js";
import {
  clearVotes,
  countAck,
  hasMajority,
  isHeldByAnother,
  majorityIsImpossible,
  noteRefusal,
  noteReportedLease,
  whyFailed,
} from "./votes.js";

/** Tries in one renewal: the first takes one round trip and the second two. The caller retries after that. */
const renewalTriesMax = 2;

/**
 * The proposer of sections 3.5 and 3.6: the report's Algorithms 2 (read and write on a majority), 3 (acquire)
 * and 4 (GetLease), with their repairs. It never reads a clock and never sets a timer: every call brings a
 * reading, and `nextDueMono` is when it wants to be woken.
 */
export class Proposer {
  readonly #settings: FleaseSettings;
  #outcomes: ProposerOutcomes;
  readonly #deadlines = new Deadlines<Operation>();
  #instances = new InstanceTable();
  #ballots = new BallotSource();
  pacing: Pacing;
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
    this.pacing = new Pacing(seed);
  }

  /** Sets the listener for the outcomes of operations from now on. */
  attach(outcomes: ProposerOutcomes): void {
    this.#outcomes = outcomes;
    if (outcomes.instance !== undefined) this.#instances.make = outcomes.instance;
  }

  get owner(): string {
    return this.#requests.owner;
  }

  /** When `tick` has work to do, on the steady clock; `Infinity` for never. */
  get nextDueMono(): number {
    return this.#deadlines.nextDueMs();
  }

  /** The instances of all operations and holds; read-only. */
  get instances(): Pick<InstanceTable, "at" | "size" | "values"> {
    return this.#instances;
  }

  instanceOf(resource: string): Instance | undefined {
    return this.#instances.of(resource);
  }

  /**
   * Begins an acquisition. `fast` tries one round trip first; use it only without a recent sign of
   * contention. The resource must have no operation and no hold here: callers within one proposer queue
   * (3.3). With `waiting`, acceptors that refuse it put it on their lists of waiters.
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
    const instance = this.#instances.take(resource, this.#requests.cells.of(resource));
    const giveUpAt = now.mono + giveUpInMs;
    const operation = this.#instances.begin(instance, OperationKind.acquire, ttlMs, giveUpAt);
    operation.waiting = waiting;
    if (fast) this.#startFast(operation, now);
    else this.#startReading(operation, now);
    return instance;
  }

  /** Ends an acquisition in progress and withdraws any write of it. */
  cancel(instance: Instance): void {
    if (instance.operation.kind === OperationKind.acquire) this.#giveUp(instance.operation, "cancelled");
  }

  /** Begins a renewal of a hold: in one round trip if its ballot still allows that, else in two. */
  renew(instance: Instance, ttlMs: number, now: Reading): void {
    if (instance.operation.kind !== OperationKind.none || !this.isHeld(instance, now)) {
      this.#outcomes.renewed(instance, false);
      return;
    }
    const operation = this.#instances.begin(instance, OperationKind.renew, ttlMs, instance.holdExpiresMonoMs);
    if (instance.renewable) {
      // No ballot lies between (N, s) and (N, s + 1), so no READ is needed.
      operation.number = instance.holdNumber;
      operation.sequence = ++instance.holdSequence;
      this.#write(operation, Kind.write, now);
    } else {
      this.#startReading(operation, now);
    }
  }

  /**
   * Releases the resource, or cleans up a lapsed tenure. The order matters (MUST): the hold ends, its ballots
   * are closed, and only then are the acceptors notified.
   */
  release(instance: Instance, now: Reading): void {
    const renewing = instance.operation.kind === OperationKind.renew;
    this.#requests.keepAbandoned(instance, now);
    instance.holding = false;
    this.#finish(instance);
    this.#requests.releaseTenure(instance, now);
    this.#instances.give(instance);
    if (renewing) this.#outcomes.renewed(instance, false);
  }

  /**
   * The holder rule (3.6), evaluated at each use. The first check of an expired hold ends the tenure for
   * good.
   */
  isHeld(instance: Instance, now: Reading): boolean {
    if (!instance.holding) return false;
    if (holdIsValid(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, now)) return true;
    this.#requests.keepAbandoned(instance, now);
    if (now.mono + granularityMs < instance.holdExpiresMonoMs) instance.letRunOut(); // The wall clock jumped ahead.
    this.#lapse(instance, now.clocksDisagree ? "clock-fault" : instance.barred ? "barred" : "expired");
    return false;
  }

  /** How long the hold can be trusted, ms; 0 when there is none. */
  remainingMs(instance: Instance, now: Reading): number {
    return this.isHeld(instance, now)
      ? validForMs(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, now)
      : 0;
  }

  /**
   * A clock fault (3.2, 3.10): all holds and attempts are dropped, and the proposer continues as another
   * owner. Nothing is released, because the program has not stopped yet; leases of the old owner run out at
   * the acceptors.
   */
  restart(owner: string): void {
    this.#requests.owner = owner;
    // A clock that ran ahead must not leave ballots ahead of it. Numbers may therefore repeat; handles must
    // not.
    this.#ballots = new BallotSource();
    this.#instances.retire();
    for (const instance of this.#instances.values()) {
      if (instance.holding) {
        this.#lapse(instance, "clock-fault");
      } else if (instance.operation.kind === OperationKind.acquire) {
        this.#finish(instance);
        this.#instances.give(instance);
        this.#outcomes.failed(instance, "clock-fault", "");
      }
      instance.letRunOut();
    }
  }

  /**
   * Continues in another view (3.14). Operations in progress start again in a new ballot, because
   * acknowledgements of two views must not count together. The next renewal of each hold takes two phases.
   */
  enterView(view: number, cells: CellMap, now: Reading): void {
    const underWay = this.#deadlines.inOrder().filter(({ phase }) => phase > Phase.backoff);
    for (const operation of underWay) {
      this.#requests.keepAbandoned(operation.instance, now);
      if (operation.kind === OperationKind.acquire) this.#withdraw(operation, operation.waiting);
    }
    this.#requests.enterView(view, cells);
    this.#instances.enterView(cells);
    for (const operation of underWay) this.#startReading(operation, now);
  }

  /** Handles a reply of the acceptor with index `from`. */
  receive(from: number, reply: Message, now: Reading): void {
    const instance = this.#instances.at(reply.instance);
    // The reply must match exactly this ballot and this write; otherwise it answers something that is closed
    // (3.5).
    if (instance === undefined || !instance.awaits(reply.number, reply.sequence)) return;
    const position = instance.cell.members.indexOf(from);
    if (position === -1 || reply.view !== this.#requests.view) return;
    const bit = 1 << position;
    if (reply.kind === Kind.promise) this.#onPromise(instance.operation, bit, reply, now);
    else if (reply.kind === Kind.ack) this.#onAck(instance.operation, bit, now);
    else if (reply.kind === Kind.nack) this.#onNack(instance, bit, reply, now);
  }

  /** Does the work that is due: timeouts of phases, and attempts after a back-off. */
  tick(now: Reading): void {
    for (;;) {
      const operation = this.#deadlines.popDue(now.mono);
      if (operation === undefined) return;
      if (operation.phase === Phase.backoff) this.#retry(operation, now);
      else if (operation.phase !== Phase.idle) this.#onTimeout(operation, now);
    }
  }

  #startFast(operation: Operation, now: Reading): void {
    this.#openBallot(operation, now);
    this.#write(operation, Kind.acquire, now);
  }

  /** Two phases: READ first, to learn every unfinished lease that a majority knows of (Algorithm 3). */
  #startReading(operation: Operation, now: Reading): void {
    this.#openBallot(operation, now);
    this.#startPhase(operation, Phase.reading, now);
    this.#requests.send(operation, Kind.read);
  }

  /** Until a refusal names a higher promise, a tenure may be renewed in this ballot in one round trip. */
  #openBallot(operation: Operation, now: Reading): void {
    operation.number = this.#ballots.next(now);
    operation.sequence = 0;
    operation.instance.renewable = true;
  }

  #write(operation: Operation, kind: typeof Kind.write | typeof Kind.acquire, now: Reading): void {
    this.#startPhase(operation, kind === Kind.acquire ? Phase.fast : Phase.writing, now);
    operation.until = now.lo + operation.ttl;
    operation.duration = operation.ttl;
    const { instance } = operation;
    if (instance.holding) {
      // A renewal must not end sooner than the hold that it renews, on either clock (3.5).
      operation.until = Math.max(operation.until, instance.holdExpiresWallMs);
      operation.duration = Math.max(operation.duration, instance.holdExpiresMonoMs - now.mono);
    }
    this.#requests.send(operation, kind);
  }

  #startPhase(operation: Operation, phase: Phase, now: Reading): void {
    operation.phase = phase;
    clearVotes(operation);
    operation.sentMono = now.mono;
    this.#wake(operation, now.mono + phaseTimeoutMs(operation, now, this.#settings));
  }

  #onPromise(operation: Operation, bit: number, reply: Message, now: Reading): void {
    if (operation.phase !== Phase.reading) return;
    countAck(operation, bit);
    noteReportedLease(operation, reply, this.owner, now, this.#settings);
    if (!hasMajority(operation)) return this.#failIfHopeless(operation, now);
    this.#hear(operation, now);
    if (operation.blockedUntil > 0) {
      operation.blockedVotes = operation.instance.cell.majority;
      this.#fail(operation, now);
    } else {
      this.#write(operation, Kind.write, now);
    }
  }

  #onAck(operation: Operation, bit: number, now: Reading): void {
    if (operation.phase !== Phase.writing && operation.phase !== Phase.fast) return;
    countAck(operation, bit);
    if (!hasMajority(operation)) return this.#failIfHopeless(operation, now);
    this.#hear(operation, now);
    this.#decide(operation, now);
  }

  #onNack(instance: Instance, bit: number, reply: Message, now: Reading): void {
    if (reply.promised > reply.number) instance.renewable = false;
    this.#ballots.learn(reply.promised, now, this.#settings.maxClockSkewMs);
    const { operation } = instance;
    if (operation.phase === Phase.idle || (operation.nacks & bit) !== 0) return;
    noteRefusal(operation, bit, reply);
    // Refusals are counted whenever they arrive; one alone decides nothing (repair F16).
    this.#failIfHopeless(operation, now);
  }

  #failIfHopeless(operation: Operation, now: Reading): void {
    if (!this.#requests.isHopeless(operation)) return;
    this.#hear(operation, now);
    this.#fail(operation, now);
  }

  #onTimeout(operation: Operation, now: Reading): void {
    operation.blockedUntil = 0; // Only a minority reported it: the next try may succeed regardless.
    this.#fail(operation, now);
  }

  /** A majority has answered, whatever it said. */
  #hear(operation: Operation, now: Reading): void {
    operation.heardMajority = true;
    this.pacing.measure(now.mono - operation.sentMono);
  }

  /** The holder rule (3.6), applied when the last missing acknowledgement arrives. */
  #decide(operation: Operation, now: Reading): void {
    const { instance } = operation;
    const end = operation.sentMono + operation.duration;
    if (!holdIsValid(operation.until, end, now)) {
      this.#fail(operation, now); // Decided only after it had expired (repair F9).
    } else if (operation.kind === OperationKind.acquire) {
      instance.holding = true;
      instance.tokenNumber = operation.number;
      instance.holdExpiresWallMs = operation.until;
      instance.holdExpiresMonoMs = end;
      this.#adoptBallot(instance);
      this.#outcomes.acquired(instance);
    } else if (this.isHeld(instance, now)) {
      this.#requests.keepReplaced(instance, now);
      instance.holdExpiresWallMs = Math.max(instance.holdExpiresWallMs, operation.until);
      instance.holdExpiresMonoMs = Math.max(instance.holdExpiresMonoMs, end);
      this.#adoptBallot(instance);
      this.#outcomes.renewed(instance, true);
    }
  }

  #adoptBallot(instance: Instance): void {
    const { number, sequence } = instance.operation;
    instance.holdNumber = number;
    instance.holdSequence = sequence;
    instance.barred = false;
    this.#finish(instance);
  }

  /** Handles the failure of the attempt in progress. */
  #fail(operation: Operation, now: Reading): void {
    const { instance } = operation;
    operation.tries += 1;
    if (operation.kind === OperationKind.renew) {
      this.#failRenewal(operation, now);
      return;
    }
    // Only a refused READ or ACQ puts a waiter on an acceptor's list: after a refused WRITE it asks again.
    const isListed = operation.phase !== Phase.writing || !operation.waiting;
    this.#withdraw(operation, operation.waiting);
    if (isListed && isHeldByAnother(operation)) {
      const { blockedBy } = operation;
      const retryInMs = this.pacing.retryInMs(operation, now, this.#settings);
      this.#finish(instance);
      this.#instances.give(instance);
      this.#outcomes.refused(instance, blockedBy, retryInMs);
    } else if (operation.lastRefusal === Refusal.busy && majorityIsImpossible(operation)) {
      this.#giveUp(operation, "busy"); // A pause of a few round trips would not be enough.
    } else if (instance.barred && majorityIsImpossible(operation)) {
      this.#giveUp(operation, "barred"); // Trying again soon is useless: the bar outlives the lease.
    } else if (operation.lastRefusal === Refusal.full && majorityIsImpossible(operation)) {
      this.#giveUp(operation, "full"); // The waist retries after a pause, if its caller waits.
    } else if (now.mono >= operation.giveUpAt) {
      this.#giveUp(operation, whyFailed(operation));
    } else {
      this.#backOff(operation, now);
    }
  }

  /** An abandoned renewal is not released while its hold exists (MUST): the acceptors' guard protects it. */
  #failRenewal(operation: Operation, now: Reading): void {
    const { instance } = operation;
    instance.renewable = false;
    this.#requests.keepAbandoned(instance, now);
    if (!this.isHeld(instance, now)) return; // The check has ended the tenure and its renewal, and reported both.
    if (operation.tries < renewalTriesMax) {
      this.#startReading(operation, now);
    } else {
      this.#finish(instance);
      this.#outcomes.renewed(instance, false);
    }
  }

  #giveUp(operation: Operation, why: AttemptFailure): void {
    const { instance, fullBy } = operation;
    this.#withdraw(operation, false);
    this.#finish(instance);
    this.#instances.give(instance);
    this.#outcomes.failed(instance, why, fullBy);
  }

  #lapse(instance: Instance, why: Lapse): void {
    instance.holding = false;
    const renewing = instance.operation.kind === OperationKind.renew;
    this.#finish(instance);
    if (renewing) this.#outcomes.renewed(instance, false);
    this.#outcomes.lapsed(instance, why);
  }

  #backOff(operation: Operation, now: Reading): void {
    operation.phase = Phase.backoff;
    operation.number = 0;
    const againMono = now.mono + this.pacing.backoffMs(operation);
    this.#wake(operation, Math.min(againMono, operation.giveUpAt));
  }

  #wake(operation: Operation, dueMs: number): void {
    operation.dueMs = dueMs;
    this.#deadlines.schedule(operation, dueMs);
  }

  #retry(operation: Operation, now: Reading): void {
    if (now.mono >= operation.giveUpAt) this.#giveUp(operation, whyFailed(operation));
    else this.#startReading(operation, now);
  }

  /** Ends the operation. Late acknowledgements of its ballot are ignored for ever. */
  #finish(instance: Instance): void {
    this.#deadlines.cancel(instance.operation);
    this.#instances.end(instance);
  }

  /** Withdraws an acquisition's write, whose outcome is unknown. This is allowed because there is no hold. */
  #withdraw(operation: Operation, waitsOn: boolean): void {
    if (operation.phase !== Phase.fast && operation.phase !== Phase.writing) return;
    const { instance, number, sequence } = operation;
    this.#requests.release(instance, number, sequence + 1, waitsOn);
    operation.phase = Phase.idle;
  }

  clone(sink: ProposerSink): Proposer {
    const copy = new Proposer(this.#settings, this.owner, 0, sink, sink);
    copy.#instances = this.#instances.clone();
    copy.#ballots = this.#ballots.clone();
    copy.pacing = this.pacing.clone();
    copy.#requests.enterView(this.#requests.view, this.#requests.cells);
    for (const { instance, dueMs } of this.#deadlines.inOrder())
      copy.#wake(copy.#instances.at(instance.index)!.operation, dueMs);
    return copy;
  }

  /**
   * Feeds the whole state into `hash`. Two proposers with equal hashes behave alike. The explorer leaves out
   * their pacing, which decides only when retries happen: the explorer decides that itself.
   */
  hashInto(hash: StateHash, withPacing = true): void {
    hash.text(this.owner).number(this.#ballots.last).number(this.#ballots.seen);
    if (withPacing) this.pacing.hashInto(hash);
    this.#instances.hashInto(hash.number(this.#requests.view));
  }
}
