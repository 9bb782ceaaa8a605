import type { Driver } from "../../delta/driver.js";
import type { Protocol } from "../../delta/effects.js";
import type { Farm } from "../../delta/farm/farm.js";
import { noMajority } from "../../delta/failures.js";
import { ownerName } from "../protocol/ballot.js";
import type { FleaseRunner } from "../runner.js";
import type { FleaseSettings } from "../protocol/settings.js";
import { LeaseholdError } from "../../lease/errors.js";
import { RunnerOnStores } from "./runner-on-stores.js";
import type { RunVisit, StoreMedium } from "./medium.js";
import { StoreAdminRpc } from "./admin-rpc.js";
import { StoresProvider } from "./stores-provider.js";
import type { StoresDriver } from "./stores-provider.js";
import type { Visiting } from "./visit.js";

export interface StoresNodeOptions {
  readonly settings: FleaseSettings;
  /** Runs protocols on the stores; closed with the node. */
  readonly driver: Driver;
  /** A founded or joined farm. */
  readonly farm: Farm;
  /** Minimum interval of checks of a held resource, ms. */
  readonly pollMs: number;
  readonly name: string;
  readonly label?: string | undefined;
  /** 64 random bits, generated anew at each call. */
  readonly incarnation: () => string;
  /** Called when the clocks of this machine are found at fault. */
  readonly onFault?: (reason: string) => void;
}

/** Upper bound of a release's or close's wait for stores, ms: the lease layer's own bound. */
const settlingMsMax = 1_000;

/** A participant of Flease on the stores of a farm. */
export class StoresNode implements StoresDriver {
  readonly runner: FleaseRunner;
  readonly provider: StoresProvider;
  readonly #options: StoresNodeOptions;
  readonly #visiting: Visiting;
  readonly #medium: StoreMedium;
  readonly #adminRpc: StoreAdminRpc;
  /** The last error of each store. */
  readonly #errors: (LeaseholdError | undefined)[] = [];
  /** Listeners for ended visits. */
  readonly #onVisited = new Set<() => void>();
  #closed: Promise<void> | undefined;

  constructor(options: StoresNodeOptions) {
    const { settings, driver, farm, name, label, pollMs } = options;
    this.#options = options;
    const { runner, visiting, medium } = new RunnerOnStores({
      settings,
      world: driver.world,
      label,
      stores: farm.size,
      idOf: (store) => farm.idOf(store),
      runVisit: this.#runVisit,
      owner: () => ownerName(name, options.incarnation()),
      clockFault: (reason) => options.onFault?.(reason),
      maintained: () => void farm.tend(driver),
      heard: (resource, request) => this.provider.releaseRequested({ resource, ...request }),
      visited: (store, error) => this.#visited(store, error),
    });
    this.runner = runner;
    this.#visiting = visiting;
    this.#medium = medium;
    this.provider = new StoresProvider(this, pollMs);
    const by = () => label ?? runner.peer.proposer.owner;
    const run = <T>(protocol: Protocol<T>) => this.#run(protocol);
    this.#adminRpc = new StoreAdminRpc({ visiting, run, timers: driver.world.timers, pollMs, by });
    runner.maintain();
  }

  /**
   * Compares settings with those recorded on the stores.
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

  async tend(): Promise<LeaseholdError | undefined> {
    const { farm, driver } = this.#options;
    const tending = farm.tend(driver);
    if (farm.ready(driver.now()) < farm.majority) await tending;
    const now = driver.now();
    return farm.ready(now) < farm.majority ? farm.whyNot(now) : undefined;
  }

  carry(resource: string, data: string | undefined): void {
    const carried = this.#visiting.acceptor.data;
    if (data === undefined) carried.delete(resource);
    else carried.set(resource, data);
  }

  whyNoQuorum(): LeaseholdError {
    const { size, majority } = this.#options.farm;
    const errors = Array.from({ length: size }, (_, store) => this.#errors[store]);
    for (const code of ["CONFIG_MISMATCH", "CLOCK_SKEW"] as const) {
      const same = errors.filter((error) => error?.code === code);
      if (size - same.length < majority) return same[0]!;
    }
    return noMajority(size, majority, this.reachable(), errors);
  }

  async settled(resource: string): Promise<void> {
    const { size, majority } = this.#options.farm;
    await this.#until(() => size - this.#medium.busyWith(resource) >= majority);
  }

  /** Stores refuse no participant; {@link whyNoQuorum} reports faults of the farm. */
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
    return this.#adminRpc.answer(member, method, params, timeoutMs);
  }

  close(): Promise<void> {
    this.#closed ??= this.#shutDown();
    return this.#closed;
  }

  async #shutDown(): Promise<void> {
    this.runner.end();
    this.#adminRpc.close();
    await this.#until(() => this.#medium.busy === 0);
    const { farm, driver } = this.#options;
    await farm.leave(driver);
    await driver.close();
  }

  /** Bounded, because an unresponsive store must not delay a release. A visit takes two operations. */
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
      const timeoutMs = Math.min(settlingMsMax, 2 * this.#options.settings.rpcTimeoutMs);
      const timer = this.runner.world.timers.after(timeoutMs, finish);
      this.#onVisited.add(look);
    });
  }

  readonly #runVisit: RunVisit = (protocol, done) => {
    void (async () => done(await this.#run(protocol)))();
  };

  #run<T>(protocol: Protocol<T>): Promise<T> {
    const { driver, farm } = this.#options;
    return driver.run(protocol, { filter: farm });
  }

  #visited(store: number, error: LeaseholdError | undefined): void {
    const name = this.address(store);
    const isNamed = error === undefined || error.message.startsWith(name);
    this.#errors[store] = isNamed ? error : new LeaseholdError(error.code, `${name}: ${error.message}`);
    for (const look of this.#onVisited) look();
  }
}
