import { readBothClocks } from "../common/both-clocks.js";
import type { Timer, World } from "../common/ports.js";
import { FleasePeer } from "./peer.js";
import type { PeerViews } from "./peer.js";
import type { Medium } from "./protocol/proposer-ports.js";
import type { Reading } from "./protocol/clock.js";
import { Message } from "./protocol/message.js";
import type { FleaseSettings } from "./protocol/settings.js";

/** Interval of a peer's maintenance, ms: recovery, idle resources, clock faults. */
const maintainEveryMs = 100;

/**
 * The interval for a peer that keeps, holds and waits for nothing, ms. It finds a clock fault that much
 * later, but has nothing to lose. A request ends the long interval at once.
 */
const restingEveryMs = 1_000;

export interface RunnerOptions {
  readonly settings: FleaseSettings;
  /** A member has an acceptor; a client is only a proposer. */
  readonly acceptor: boolean;
  readonly world: World;
  readonly medium: Medium;
  readonly views?: PeerViews | undefined;
  /** The owner name of a new incarnation. It must differ from all earlier ones. */
  owner(): string;
  /** The clocks are at fault, and the next incarnation begins: connections of the previous one must end. */
  clockFault(reason: string): void;
  /** Called after each maintenance of the peer, for other periodic work. */
  maintained(now: Reading): void;
  /** Whether the work of `maintained` can wait until that time, too. Without it a peer never rests. */
  restsUntil?(mono: number): boolean;
}

/**
 * Runs a {@link FleasePeer}: reads the clocks for it, wakes it when it is due, runs its maintenance, and
 * begins a new incarnation after a clock fault. All input and output goes through ports: the same code runs
 * over TCP, on stores and in the simulators.
 */
export class FleaseRunner {
  readonly peer: FleasePeer;
  readonly world: World;
  readonly #options: RunnerOptions;
  readonly #clocks = { monotonicMs: 0, wallMs: 0 };
  readonly #reply = new Message();
  #now: Reading;
  /** When the peer will be woken, on the steady clock. */
  #wakeAt = Infinity;
  #wakeTimer: Timer | undefined;
  #maintainTimer: Timer | undefined;
  /** End of a long interval, on the steady clock; `undefined` during a short one. */
  #restsUntil: number | undefined;
  #ended = false;

  constructor(options: RunnerOptions) {
    const { settings, acceptor, world, views } = options;
    this.#options = options;
    this.world = world;
    const seed = Math.floor(world.random.next() * 0x1_0000_0000);
    const first = { owner: options.owner(), seed, acceptor, views };
    const { monotonicMs, wallMs } = readBothClocks(world.clock, this.#clocks);
    this.peer = new FleasePeer(settings, first, monotonicMs, wallMs, options.medium, this.#restart);
    this.#now = this.now();
  }

  /** Maintains the peer now, and periodically from now on. */
  maintain(): void {
    if (this.#ended) return;
    this.#restsUntil = undefined;
    const now = this.now();
    this.peer.maintain(now);
    this.#options.maintained(now);
    this.poke();
    const restedMono = now.mono + restingEveryMs;
    this.#restsUntil = this.#mayRest(restedMono) ? restedMono : undefined;
    this.#maintainAfter(this.#restsUntil === undefined ? maintainEveryMs : restingEveryMs);
  }

  #mayRest(untilMono: number): boolean {
    return this.peer.isIdle && this.#options.restsUntil?.(untilMono) === true;
  }

  #maintainAfter(delayMs: number): void {
    const { clock, timers } = this.world;
    const dueMono = clock.monotonicMs() + delayMs;
    this.#maintainTimer = timers.after(delayMs, () => {
      this.peer.admission.look(clock.monotonicMs() - dueMono);
      this.maintain();
    });
  }

  /** Stops waking the peer. */
  end(): void {
    this.#ended = true;
    this.#wakeTimer?.cancel();
    this.#maintainTimer?.cancel();
  }

  /** A fresh reading of the peer's clock. The record is reused: it is valid until the next call. */
  now(): Reading {
    const { monotonicMs, wallMs } = readBothClocks(this.world.clock, this.#clocks);
    return this.peer.read(monotonicMs, wallMs);
  }

  /** Called after a call or message to the peer: computes when it is due next. */
  poke(): void {
    if (this.#restsUntil !== undefined && !this.#mayRest(this.#restsUntil)) this.#stir();
    const dueMono = this.peer.nextDueMono;
    if (dueMono >= this.#wakeAt || this.#ended) return;
    this.#wakeTimer?.cancel();
    this.#wakeAt = dueMono;
    this.#wakeTimer = this.world.timers.after(dueMono - this.world.clock.monotonicMs(), () => {
      this.#wakeAt = Infinity;
      this.peer.tick(this.now());
      this.poke();
    });
  }

  #stir(): void {
    this.#restsUntil = undefined;
    this.#maintainTimer?.cancel();
    if (!this.#ended) this.#maintainAfter(0);
  }

  /**
   * Takes the reading for messages that have arrived. Messages until the next call are judged by this
   * reading, or by a later one. It is made after they have arrived (3.2, MUST), once for all that arrived
   * together.
   */
  arrived(): Reading {
    this.#now = this.now();
    return this.#now;
  }

  /** The last reading: no earlier than that of `arrived`, because each `now` writes to the same record. */
  get reading(): Reading {
    return this.#now;
  }

  /**
   * Passes on the clock bounds of a batch. False when they contradict this clock, so that no message of the
   * batch may count (3.10). Only members' bounds are remembered: it takes a majority of members to find this
   * clock at fault.
   */
  believes(from: number, loMs: number, hiMs: number, echoLoMs: number): boolean {
    const { peer } = this;
    return from < peer.settings.members.length
      ? peer.hearClock(from, loMs, hiMs, echoLoMs, this.#now)
      : peer.skew.isPossible(loMs, hiMs, echoLoMs, this.#now);
  }

  /** Passes an arrived message to the peer. The reply, if any, is reused: it is valid until the next call. */
  receive(from: number, message: Message): Message | undefined {
    return this.peer.receive(from, message, this.#now, this.#reply) ? this.#reply : undefined;
  }

  /** Continues as another owner (3.2, 3.10): everything that the previous one held is lost. */
  readonly #restart = (reason: string): void => {
    this.#options.clockFault(reason);
    const { monotonicMs, wallMs } = readBothClocks(this.world.clock, this.#clocks);
    this.peer.restart(this.#options.owner(), monotonicMs, wallMs);
  };
}
