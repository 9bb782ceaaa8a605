import type { Driver, Gate } from "../delta/driver.js";
import type { Protocol } from "../delta/effects.js";
import type { StoreTraits } from "../delta/store.js";
import { ownerName } from "../flease/ballot.js";
import type { Reading } from "../flease/clock.js";
import { Message } from "../flease/message.js";
import { FleasePeer } from "../flease/peer.js";
import type { FleasePeerSink } from "../flease/peer.js";
import type { FleaseDriver } from "../flease/provider.js";
import type { FleaseSettings } from "../flease/settings.js";
import type { LeaseholdError } from "../lease/errors.js";
import type { Random, Timer, Timers } from "../lease/ports.js";
import { Agreement } from "./agreement.js";
import { GridProvider } from "./grid-provider.js";
import { StoreMedium } from "./medium.js";
import type { RunVisit } from "./medium.js";
import { StoreSideCalls } from "./side-calls.js";
import { StoreAcceptor } from "./store-acceptor.js";
import type { Visiting } from "./visit.js";

/** Which stores count, and the markers that they have. */
export interface GridFarm extends Gate {
  idOf(store: number): string;
}

export interface GridOptions {
  readonly settings: FleaseSettings;
  /** Runs protocols on the stores; closed with the node. */
  readonly driver: Driver;
  readonly farm: GridFarm;
  /** Of each store. */
  readonly traits: readonly StoreTraits[];
  readonly name: string;
  readonly label?: string | undefined;
  /** 64 random bits, drawn anew at each call. */
  readonly incarnation: () => string;
  /** Told when the clocks of this machine are found at fault. */
  readonly onFault?: (reason: string) => void;
}

/** How often the peer looks for clock faults. */
const maintainEveryMs = 100;

/**
 * A participant of the grid: Flease's proposer, and its acceptors on the stores of a farm, of whose part each participant
 * takes as much as it needs.
 */
export class GridNode implements FleaseDriver {
  readonly peer: FleasePeer;
  readonly provider: GridProvider;
  readonly timers: Timers;
  readonly random: Random;
  readonly #options: GridOptions;
  readonly #medium: StoreMedium;
  readonly #sideCalls: StoreSideCalls;
  /** Why the last visit of each store came to nothing. */
  readonly #errors: (LeaseholdError | undefined)[] = [];
  /** Called when a visit has ended. */
  readonly #onVisited = new Set<() => void>();
  #wakeAt = Infinity;
  #wakeTimer: Timer | undefined;
  #maintainTimer: Timer | undefined;
  #closed: Promise<void> | undefined;
  readonly #ignored = new Message();

  constructor(options: GridOptions) {
    const { settings, driver, farm, label } = options;
    this.#options = options;
    const { timers, random } = driver.world;
    this.timers = timers;
    this.random = random;
    const { monotonicMs, wallMs } = driver.now();
    const seed = Math.floor(random.next() * 0x1_0000_0000);
    const first = { owner: this.#ownerName(), seed, acceptor: false };
    this.peer = new FleasePeer(settings, first, monotonicMs, wallMs, this.#sink());
    this.provider = new GridProvider(this, this.pollMs);
    const visiting: Visiting = {
      acceptor: new StoreAcceptor(settings, label),
      agreement: new Agreement(settings, options.traits.length),
      stores: options.traits.length,
      idOf: (store) => farm.idOf(store),
      now: () => this.now(),
      timeoutMs: settings.rpcTimeoutMs,
    };
    this.#medium = new StoreMedium(visiting, this.#runVisit, {
      deliver: (store, reply) => this.peer.receive(store, reply, this.now(), this.#ignored),
      heard: (resource, request) => this.provider.releaseRequested({ resource, ...request }),
      visited: (store, _resource, error) => this.#visited(store, error),
    });
    const by = () => label ?? this.peer.proposer.owner;
    const run = <T>(protocol: Protocol<T>) => driver.run(protocol, { gate: farm });
    this.#sideCalls = new StoreSideCalls({ visiting, run, timers, pollMs: this.pollMs, by });
    this.#maintain();
  }

  /** How often a resource that is held may be looked at, ms: as often as the dearest store allows. */
  get pollMs(): number {
    return Math.max(...this.#options.traits.map(({ pollMs }) => pollMs));
  }

  /** Why stores do not count at present, as far as they have been asked; by their index. */
  get errors(): readonly (LeaseholdError | undefined)[] {
    return this.#options.traits.map((_, store) => this.#errors[store]);
  }

  /** Resolves when a majority of the stores has taken what they were asked for this resource, or all have had their time. */
  async settled(resource: string): Promise<void> {
    const { traits } = this.#options;
    const isSettled = () => {
      const busy = traits.filter((_, store) => this.#medium.isBusy(store, resource)).length;
      return 2 * busy < traits.length;
    };
    await this.#until(isSettled);
  }

  // FleaseDriver

  now(): Reading {
    const { monotonicMs, wallMs } = this.#options.driver.now();
    return this.peer.read(monotonicMs, wallMs);
  }

  poke(): void {
    const dueAt = this.peer.nextDueMono;
    if (dueAt >= this.#wakeAt || this.#closed !== undefined) return;
    this.#wakeTimer?.cancel();
    this.#wakeAt = dueAt;
    this.#wakeTimer = this.timers.after(dueAt - this.now().mono, () => {
      this.#wakeAt = Infinity;
      this.peer.tick(this.now());
      this.poke();
    });
  }

  reachable(): number {
    return this.errors.filter((error) => error === undefined).length;
  }

  address(member: number): string {
    return this.#options.traits[member]!.name;
  }

  ask(member: number, method: string, params: object, timeoutMs: number): Promise<unknown> {
    return this.#sideCalls.answer(member, method, params, timeoutMs);
  }

  close(): Promise<void> {
    this.#closed ??= this.#shutDown();
    return this.#closed;
  }

  async #shutDown(): Promise<void> {
    this.#wakeTimer?.cancel();
    this.#maintainTimer?.cancel();
    this.#sideCalls.close();
    await this.#until(() => this.#medium.busy === 0);
    await this.#options.driver.close();
  }

  /** Each visit ends within a bounded time, so this does. Two operations are enough for one that nobody disturbs. */
  #until(isSo: () => boolean): Promise<void> {
    if (isSo()) return Promise.resolve();
    return new Promise((resolve) => {
      const look = () => {
        if (isSo()) finish();
      };
      const finish = () => {
        timer.cancel();
        this.#onVisited.delete(look);
        resolve();
      };
      const timer = this.timers.after(2 * this.peer.settings.rpcTimeoutMs, finish);
      this.#onVisited.add(look);
    });
  }

  readonly #runVisit: RunVisit = (protocol, done) => {
    const { driver, farm } = this.#options;
    void driver.run(protocol, { gate: farm }).then((came) => {
      done(came);
      this.poke();
    });
  };

  #visited(store: number, error: LeaseholdError | undefined): void {
    this.#errors[store] = error;
    for (const look of this.#onVisited) look();
  }

  #sink(): FleasePeerSink {
    return {
      send: (to, message) => this.#medium.send(to, message),
      acquired: (slot) => this.provider.acquired(slot),
      refused: (slot, holder, retryInMs) => this.provider.refused(slot, holder, retryInMs),
      unanswered: (slot, why) => this.provider.unanswered(slot, why),
      renewed: (slot, longer) => this.provider.renewed(slot, longer),
      lapsed: (slot, why) => this.provider.lapsed(slot, why),
      tell: () => false,
      hinted: () => false,
      clockFault: (reason) => this.#restart(reason),
    };
  }

  /** Goes on as another owner (3.2): what the former one left on the stores runs out. */
  #restart(reason: string): void {
    this.#options.onFault?.(reason);
    const { monotonicMs, wallMs } = this.#options.driver.now();
    this.peer.restart(this.#ownerName(), monotonicMs, wallMs);
  }

  #ownerName(): string {
    return ownerName(this.#options.name, this.#options.incarnation());
  }

  #maintain(): void {
    if (this.#closed !== undefined) return;
    this.peer.maintain(this.now());
    this.poke();
    this.#maintainTimer = this.timers.after(maintainEveryMs, () => this.#maintain());
  }
}
