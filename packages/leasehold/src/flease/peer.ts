import { majorityOf } from "../common/majority.js";
import { Acceptor } from "./protocol/acceptor.js";
import { Admission } from "./admission.js";
import { FleaseClock, emptyReading } from "./protocol/clock.js";
import type { Reading } from "./protocol/clock.js";
import type { Instance } from "./protocol/instance.js";
import { isRequest, Kind, Message, Refusal } from "./protocol/message.js";
import { Proposer } from "./protocol/proposer.js";
import type { ProposerOutcomes, Medium } from "./protocol/proposer-ports.js";
import { Cells } from "./protocol/cells.js";
import type { CellMap } from "./protocol/cells.js";
import { cellsOf } from "./views/joint-cells.js";
import { Queries } from "./protocol/queries.js";
import type { FleaseSettings } from "./protocol/settings.js";
import { SkewWatch } from "./protocol/skew.js";
import { votersOf } from "./views/view.js";
import { Views } from "./views/views.js";
import type { KeptView, Membership, ViewNote } from "./views/view.js";
import { WatchFeed } from "./admin/watch-feed.js";
import { Waiters } from "./protocol/waiters.js";

export interface FleasePeerOptions {
  /** The owner name of the first incarnation. */
  readonly owner: string;
  readonly seed: number;
  /** A member has an acceptor; a client is only a proposer. */
  readonly acceptor: boolean;
  /** The ports for member changes (3.14); absent where members don't change. */
  readonly views?: PeerViews | undefined;
}

/** The ports that a participant needs for member changes. */
export interface PeerViews {
  /** The member's id; "" for one without a vote. */
  readonly id: string;
  /** The first view: the stored one, or else the view given by the settings. */
  readonly kept: KeptView | undefined;
  /** Stores a view, so that a restart does not go back; false when it cannot. */
  keep(kept: KeptView): boolean;
}

/** Called in the middle of a step, when operations end and for releases. It must not call the peer back. */
export interface PeerOutcomes<Made extends Instance = Instance> extends ProposerOutcomes<Made> {
  /** Reports that a resource may have become free. False when nobody here waits for it. */
  hinted(resource: string): boolean;
}

/** While nobody is attached, no operation has begun, so there is nothing to report. */
const nobodyAttached: PeerOutcomes = {
  acquired: () => {},
  refused: () => {},
  failed: () => {},
  renewed: () => {},
  lapsed: () => {},
  hinted: () => false,
};

/** The minimum number of resources checked in one call of `maintain`. */
const discardLimit = 2_000;

/**
 * How long a notified waiter has a free resource to itself, as a fraction of a phase's timeout: enough for
 * two round trips, and short in case the waiter has crashed or was stopped.
 */
const hintPatience = 1 / 4;
const hintPatienceMsMin = 50;

/** A member that is late by more than this fraction of a phase's timeout is overloaded. */
const latePart = 1 / 4;

/**
 * Pause of all attempts after a fault of this machine's own clocks, ms. If a wall clock still runs away, the
 * next fault is found in less time, and leases acquired in between would be lost at once.
 */
const movedApartMemoryMs = 2_000;

const contradicted = "a majority of the members contradicts this clock";

/**
 * One participant of a Flease cluster, pure: a proposer, and for members also an acceptor, on one clock. Its
 * runner passes in messages and clock readings, and the medium carries its messages.
 *
 * Comments in Flease cite `docs/internals/flease.md`: its sections, repairs (F1 and on) and planted mistakes
 * (P1 and on). "The report" is the paper that it names.
 */
export class FleasePeer {
  readonly settings: FleaseSettings;
  readonly proposer: Proposer;
  readonly queries: Queries;
  readonly acceptor: Acceptor | undefined;
  readonly skew: SkewWatch;
  /** The acceptor's admission of requests. */
  readonly admission: Admission;
  /** Changes for watches; absent without an acceptor. */
  readonly feed: WatchFeed | undefined;
  /** The cells of the present view. */
  cells: CellMap;
  /** The view: the members that count. */
  readonly views: Views;
  /** The waiters at this acceptor. */
  readonly waiters: Waiters;
  /** Reused for HINT and PASS, which are not part of the protocol. */
  readonly #aside = new Message();
  readonly clock: FleaseClock;
  readonly #medium: Medium;
  readonly #clockFault: (reason: string) => void;
  #outcomes: PeerOutcomes;
  readonly #reading = emptyReading();
  #fault: string | undefined;
  /** When this machine's two clocks were last found to disagree, on the steady clock. */
  #movedApartAt = -Infinity;

  /**
   * @param clockFault called when the clocks cannot be trusted: everything held is lost, and the callee must
   *   `restart` the peer as another owner
   */
  constructor(
    settings: FleaseSettings,
    options: FleasePeerOptions,
    mono: number,
    wall: number,
    medium: Medium,
    clockFault: (reason: string) => void,
    outcomes: PeerOutcomes = nobodyAttached,
  ) {
    this.settings = settings;
    this.#medium = medium;
    this.#clockFault = clockFault;
    this.#outcomes = outcomes;
    this.waiters = new Waiters(Math.max(hintPatienceMsMin, settings.rpcTimeoutMs * hintPatience));
    this.clock = new FleaseClock(mono, wall, settings.maxClockSkewMs, settings.clockRateError);
    const now = this.read(mono, wall);
    this.proposer = new Proposer(settings, options.owner, options.seed, medium, outcomes);
    this.queries = new Queries(settings, (to, message) => medium.send(to, message));
    this.admission = new Admission(settings.rpcTimeoutMs * latePart);
    this.acceptor = options.acceptor ? new Acceptor(settings, now, options.seed) : undefined;
    this.feed = this.acceptor === undefined ? undefined : new WatchFeed(this.acceptor);
    this.skew = new SkewWatch(settings.maxClockSkewMs, majorityOf(settings.members.length));
    const { id = "", kept, keep = () => true } = options.views ?? {};
    this.cells = new Cells(settings.members, settings.cellSize);
    this.views = new Views(settings, id, kept, now, keep);
    if (kept !== undefined) this.#enterView(now);
  }

  /** Sets the listener for operations from now on. */
  attach(outcomes: PeerOutcomes): void {
    this.#outcomes = outcomes;
    this.proposer.attach(outcomes);
  }

  /** Why this peer does not trust its own clock at present. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** When `tick` has work to do, on the steady clock. */
  get nextDueMono(): number {
    return Math.min(this.proposer.nextDueMono, this.queries.nextDueMono);
  }

  /**
   * Whether it has no entry, hold, waiter or clock doubt, so that `maintain` may be called only once a
   * second.
   */
  get isIdle(): boolean {
    const { acceptor, proposer, waiters, views, skew } = this;
    if (acceptor !== undefined && (!acceptor.ready || acceptor.size > 0)) return false;
    if (proposer.instances.size > 0 || waiters.size > 0 || views.view.before !== undefined) return false;
    return this.#fault === undefined && !skew.weAreFaulty;
  }

  /** Makes a reading of two clock values. The record is reused: it is valid until the next call. */
  read(mono: number, wall: number): Reading {
    return this.clock.read(mono, wall, this.#reading);
  }

  /**
   * Handles a message from peer `from`. The reading must have been made after the message was received (MUST:
   * an older one makes an acceptor's guard end too early). Returns true when `reply` must be sent back.
   */
  receive(from: number, message: Message, now: Reading, reply: Message): boolean {
    if (isRequest(message.kind)) {
      if (this.acceptor === undefined || !this.views.mayVote) return false;
      // A PASS only changes the list of waiters.
      const replies = message.kind !== Kind.pass && this.#answer(this.acceptor, from, message, now, reply);
      this.#keepWaiters(from, message, now, replies ? reply : undefined);
      const changes = replies ? reply.kind === Kind.ack : message.kind === Kind.release;
      if (changes) this.feed?.note(message.resource, now);
      return replies;
    }
    if (message.kind === Kind.state) this.queries.receive(from, message, now);
    else if (message.kind === Kind.hint) this.#onHint(from, message);
    else this.proposer.receive(from, message, now);
    return false;
  }

  #answer(acceptor: Acceptor, from: number, request: Message, now: Reading, reply: Message): boolean {
    const { kind, resource } = request;
    if (kind === Kind.read || kind === Kind.write || kind === Kind.acquire) {
      const isLate = !this.admission.isOpen;
      const standsBack = this.waiters.standsBack(resource, from, now.mono);
      // Decided by the entry alone, never by a claim in the request, which anyone could make.
      if ((isLate || standsBack) && !acceptor.continues(request, now)) {
        if (isLate && !this.admission.admits(from, request))
          return acceptor.refuse(request, Refusal.busy, now, reply);
        if (standsBack) return acceptor.refuse(request, Refusal.held, now, reply);
      }
    }
    return acceptor.receive(request, now, reply);
  }

  /**
   * Records the clock bounds of a member's batch (3.10). False when its messages must not count. When a
   * majority contradicts this clock, this clock is wrong, and from then on nothing is held by it.
   */
  hearClock(member: number, peerLo: number, peerHi: number, echoLo: number, now: Reading): boolean {
    const possible = this.skew.observe(member, peerLo, peerHi, echoLo, now);
    if (this.#fault === undefined && this.skew.weAreFaulty) this.clock.distrust();
    return possible;
  }

  /** Handles the view that another participant sent. True when this peer has entered it. */
  hearView(note: ViewNote, now: Reading): boolean {
    const entered = this.views.hear(note, now);
    if (entered) this.#enterView(now);
    return entered;
  }

  /** Begins a change of the members. False when the new view could not be stored. */
  changeMembers(next: Membership, now: Reading): boolean {
    const entered = this.views.change(next, now);
    if (entered) this.#enterView(now);
    return entered;
  }

  #enterView(now: Reading): void {
    const { view, barrier } = this.views;
    const cells = (this.cells = cellsOf(view, this.settings.members));
    this.acceptor?.enterView(view.stamp, barrier);
    this.proposer.enterView(view.stamp, cells, now);
    this.queries.enterView(view.stamp, cells);
    this.skew.majority = majorityOf(votersOf(view).length);
  }

  /**
   * Adds a connection of this owner. The account is charged for what the acceptor keeps because of its
   * requests.
   */
  introduce(owner: string, account: string): void {
    this.acceptor?.quotas?.introduce(owner, account);
    this.waiters.quotas.introduce(owner, account);
  }

  /** Removes that connection. */
  gone(owner: string, account: string): void {
    this.acceptor?.quotas?.gone(owner, account);
    this.waiters.quotas.gone(owner, account);
  }

  /** Removes all connections. */
  everybodyGone(): void {
    this.acceptor?.quotas?.everybodyGone();
    this.waiters.clear();
  }

  /** Forgets a disconnected peer. */
  forget(peer: number): void {
    this.waiters.forget(peer);
    this.skew.forget(peer);
  }

  /** Updates the list of waiters for a resource, and notifies the first when the resource has become free. */
  #keepWaiters(from: number, request: Message, now: Reading, reply: Message | undefined): void {
    const { resource } = request;
    if (reply?.kind === Kind.nack) {
      const waits = request.waiting && reply.refusal === Refusal.held;
      reply.ahead = waits ? this.waiters.add(resource, from, request.owner) : 0;
    } else if (reply?.kind === Kind.ack) {
      this.waiters.taken(resource, from);
    } else if (request.kind === Kind.release && request.waiting) {
      // Most likely another participant holds the resource, and only this acceptor does not know. Each
      // notified waiter would try in vain, withdraw and cause the next notification, for as long as that
      // lease runs. A withdrawal of a write that never arrived here says nothing about the resource, which
      // may not even exist.
      if (this.acceptor?.wrote(request) === true)
        this.waiters.lost(resource, from, request.owner, now.mono + this.settings.ttlMaxMs);
    } else if (request.kind === Kind.release || request.kind === Kind.pass) {
      if (request.kind === Kind.pass) this.waiters.remove(resource, from);
      else this.waiters.released(resource);
      if (this.waiters.size > 0) this.#notifyNext(resource, now);
    }
  }

  #notifyNext(resource: string, now: Reading): void {
    const entry = this.acceptor?.entry(resource);
    if (entry !== undefined && this.acceptor?.isOver(entry, now) === false) return;
    for (;;) {
      const waiter = this.waiters.next(resource, now.mono);
      if (waiter === undefined || this.#notify(waiter, Kind.hint, resource)) return;
      this.waiters.remove(resource, waiter);
    }
  }

  #onHint(from: number, message: Message): void {
    if (!this.#outcomes.hinted(message.resource)) this.#notify(from, Kind.pass, message.resource);
  }

  #notify(to: number, kind: Kind, resource: string): boolean {
    const aside = this.#aside;
    aside.kind = kind;
    aside.view = this.views.view.stamp;
    aside.resource = resource;
    aside.owner = this.proposer.owner;
    return this.#medium.notify(to, aside);
  }

  tick(now: Reading): void {
    this.proposer.tick(now);
    this.queries.tick(now);
  }

  /**
   * To be called several times a second: ends a recovery wait, forgets idle resources and checks for clock
   * faults.
   */
  maintain(now: Reading): void {
    this.#checkClocks(now);
    if (this.views.look(now)) this.#enterView(now);
    this.acceptor?.wake(now);
    this.feed?.expire(now);
    // At least a fiftieth of them, so that all are checked within about five seconds, however many there are.
    this.acceptor?.discardIdle(now, Math.max(discardLimit, this.acceptor.size / 50));
    // Handles leases that expired because their holder crashed, and notified waiters that did not ask.
    if (this.acceptor?.ready === true && this.waiters.size > 0)
      for (const resource of this.waiters.sweep(discardLimit)) this.#notifyNext(resource, now);
  }

  #checkClocks(now: Reading): void {
    if (this.skew.weAreFaulty) {
      // Stays silent until the peers have found its clock sane for a whole recovery wait (3.10).
      this.acceptor?.beginRecoveryWait(now);
      if (this.#fault === undefined) this.#declareFault(contradicted);
      return;
    }
    if (now.clocksDisagree) {
      const apartMs = Math.round(this.clock.disagreedByMs);
      this.#movedApartAt = now.mono;
      this.#declareFault(
        apartMs === 0
          ? contradicted
          : `the wall clock and the steady clock of this machine moved ${apartMs} ms apart`,
      );
      return;
    }
    if (now.mono - this.#movedApartAt >= movedApartMemoryMs) this.#fault = undefined;
  }

  #declareFault(why: string): void {
    this.#fault = why;
    this.#clockFault(why);
  }

  /**
   * Continues as another owner after a clock fault, with a new anchor. The acceptor is silent for a recovery
   * wait but forgets nothing (3.2).
   */
  restart(owner: string, mono: number, wall: number): void {
    this.clock.restart(mono, wall);
    const now = this.read(mono, wall);
    this.proposer.restart(owner);
    this.acceptor?.beginRecoveryWait(now);
  }
}
