import type { Driver } from "../../delta/driver.js";
import type { Protocol } from "../../delta/effects.js";
import type { Farm } from "../../delta/farm/farm.js";
import { noMajority } from "../../delta/failures.js";
import { ownerName } from "../protocol/ballot.js";
import type { Reading } from "../protocol/clock.js";
import { Message } from "../protocol/message.js";
import { FleasePeer } from "../peer.js";
import type { FleasePeerSink } from "../peer.js";
import { outcomesFor } from "../provider.js";
import type { FleaseDriver } from "../provider.js";
import type { FleaseSettings } from "../protocol/settings.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { Random, Timer, Timers } from "../../lease/ports.js";
import { Agreement } from "./agreement.js";
import { GridProvider } from "./grid-provider.js";
import { StoreMedium } from "./medium.js";
import type { RunVisit } from "./medium.js";
import { StoreSideCalls } from "./side-calls.js";
import { StoreAcceptor } from "./store-acceptor.js";
import type { Visiting } from "./visit.js";

export interface GridOptions {
  readonly settings: FleaseSettings;
  /** Runs protocols on the stores; closed with the node. */
  readonly driver: Driver;
  /** Founded, or joined. */
  readonly farm: Farm;
  /** How often a resource that is held may be looked at, ms. */
  readonly pollMs: number;
  readonly name: string;
  readonly label?: string | undefined;
  /** 64 random bits, drawn anew at each call. */
  readonly incarnation: () => string;
  /** Told when the clocks of this machine are found at fault. */
  readonly onFault?: (reason: string) => void;
}

/** How often clocks are looked at for faults, and the farm for stores that may count again. */
const maintainEveryMs = 100;

/** How long a release, or closing, waits for stores at the most: what the waist has for it. */
const settlingMsMax = 1_000;

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
  readonly #visiting: Visiting;
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
    const { settings, driver, farm, label, pollMs } = options;
    this.#options = options;
    const { timers, random } = driver.world;
    this.timers = timers;
    this.random = random;
    const { monotonicMs, wallMs } = driver.now();
    const seed = Math.floor(random.next() * 0x1_0000_0000);
    const first = { owner: this.#ownerName(), seed, acceptor: false };
    this.peer = new FleasePeer(settings, first, monotonicMs, wallMs, this.#sink());
    this.provider = new GridProvider(this, pollMs);
    this.#visiting = {
      acceptor: new StoreAcceptor(settings, label),
      agreement: new Agreement(settings, farm.size),
      stores: farm.size,
      idOf: (store) => farm.idOf(store),
      now: () => this.now(),
      timeoutMs: settings.rpcTimeoutMs,
    };
    this.#medium = new StoreMedium(this.#visiting, this.#runVisit, {
      deliver: (store, reply) => this.peer.receive(store, reply, this.now(), this.#ignored),
      heard: (resource, request) => this.provider.releaseRequested({ resource, ...request }),
      visited: (store, _resource, error) => this.#visited(store, error),
    });
    const by = () => label ?? this.peer.proposer.owner;
    const run = <T>(protocol: Protocol<T>) => this.#run(protocol);
    this.#sideCalls = new StoreSideCalls({ visiting: this.#visiting, run, timers, pollMs, by });
    this.#maintain();
  }

  /**
   * Compares settings with those that the stores have been used with.
   *
   * @throws LeaseholdError `CONFIG_MISMATCH`
   */
  async agree(): Promise<void> {
    const { farm } = this.#options;
    const stores = Array.from({ length: farm.size }, (_, store) => store);
    const { agreement } = this.#visiting;
    const ready = stores.filter((store) => farm.stateOf(store) === "ready");
    const found = await Promise.all(ready.map((store) => this.#run(agreement.at(store, farm.idOf(store)))));
    const mismatch = found.find((error) => error?.code === "CONFIG_MISMATCH");
    if (mismatch !== undefined) throw mismatch;
  }

  /** Looks after stores that do not count; why no lease can be had at all, if they are too many. */
  async tend(): Promise<LeaseholdError | undefined> {
    const { farm, driver } = this.#options;
    const tending = farm.tend(driver);
    if (farm.ready(driver.now()) < farm.majority) await tending;
    const now = driver.now();
    return farm.ready(now) < farm.majority ? farm.whyNot(now) : undefined;
  }

  /** Why no majority has answered. */
  whyNoQuorum(): LeaseholdError {
    const { size, majority } = this.#options.farm;
    const errors = Array.from({ length: size }, (_, store) => this.#errors[store]);
    for (const code of ["CONFIG_MISMATCH", "CLOCK_SKEW"] as const) {
      const same = errors.filter((error) => error?.code === code);
      if (size - same.length < majority) return same[0]!;
    }
    return noMajority(size, majority, this.reachable(), errors);
  }

  /** Resolves when a majority of the stores has taken what they were asked for this resource, or all have had their time. */
  async settled(resource: string): Promise<void> {
    const { size, majority } = this.#options.farm;
    await this.#until(() => size - this.#medium.busyWith(resource) >= majority);
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

  /** A store refuses nobody by itself; what is wrong with the farm {@link whyNoQuorum} says. */
  refusal(): undefined {
    return undefined;
  }

  reachable(): number {
    const { size } = this.#options.farm;
    return size - this.#errors.filter((error) => error !== undefined).length;
  }

  address(member: number): string {
    return this.#options.farm.nameOf(member);
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
    const { farm, driver } = this.#options;
    await farm.leave(driver);
    await driver.close();
  }

  /** Not for ever: a store that hangs must not hold up whoever gives something back. Two operations are enough for a visit. */
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
      const timeoutMs = Math.min(settlingMsMax, 2 * this.peer.settings.rpcTimeoutMs);
      const timer = this.timers.after(timeoutMs, finish);
      this.#onVisited.add(look);
    });
  }

  readonly #runVisit: RunVisit = (protocol, done) => {
    void this.#visit(protocol, done);
  };

  async #visit(...[protocol, done]: Parameters<RunVisit>): Promise<void> {
    done(await this.#run(protocol));
    this.poke();
  }

  #run<T>(protocol: Protocol<T>): Promise<T> {
    const { driver, farm } = this.#options;
    return driver.run(protocol, { gate: farm });
  }

  #visited(store: number, error: LeaseholdError | undefined): void {
    const name = this.address(store);
    const isNamed = error === undefined || error.message.startsWith(name);
    this.#errors[store] = isNamed ? error : new LeaseholdError(error.code, `${name}: ${error.message}`);
    for (const look of this.#onVisited) look();
  }

  #sink(): FleasePeerSink {
    return {
      send: (to, message) => this.#medium.send(to, message),
      ...outcomesFor(() => this.provider),
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
    void this.#options.farm.tend(this.#options.driver);
    this.poke();
    this.#maintainTimer = this.timers.after(maintainEveryMs, () => this.#maintain());
  }
}
