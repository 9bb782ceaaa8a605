import type { World } from "leasehold/inner/common/ports.js";
import { Driver } from "leasehold/inner/delta/driver.js";
import { Farm } from "leasehold/inner/delta/farm/farm.js";
import type { FleasePeer } from "leasehold/inner/flease/peer.js";
import { emptyReading } from "leasehold/inner/flease/protocol/clock.js";
import type { Reading } from "leasehold/inner/flease/protocol/clock.js";
import { StoresNode } from "leasehold/inner/flease/stores/stores-node.js";
import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import type { Cancellation, Grant } from "leasehold/inner/lease/provider.js";
import { SimClock } from "../kit/clocks.js";
import { SteadyTimers } from "../kit/steady-timers.js";
import { StorePath, type StoreNetwork, type StoreUser } from "../kit/store-path.js";
import type { StoreChecks } from "./checks.js";
import type { Ground } from "./ground.js";

/** A process: the product's code for stores, and programs that take, renew and release resources. */
export class StoresClient implements StoreUser {
  readonly name: string;
  readonly clock: SimClock;
  isDown = false;
  readonly #ground: Ground;
  readonly #checks: StoreChecks;
  readonly #driver: Driver;
  readonly #farm: Farm;
  readonly #timers: SteadyTimers;
  readonly #peeked = emptyReading();
  #node: StoresNode | undefined;
  #pausedUntilMs = 0;
  /** Events during its pause. */
  #deferred: (() => void)[] = [];

  constructor(ground: Ground & StoreNetwork<StoresClient>, checks: StoreChecks, name: string) {
    const { plan, random } = ground;
    this.#ground = ground;
    this.#checks = checks;
    this.name = name;
    this.clock = new SimClock(ground.shared, random.between(0, 1e6), true);
    this.clock.offsetMs = ground.randomOffsetMs();
    if (!plan.wildRates) this.clock.setRate(ground.nowMs, 1 + random.between(-1, 1) * plan.clockDrift);
    this.#timers = new SteadyTimers(ground, {
      clock: this.clock,
      turn: (_wake, body) => this.awake(body),
      drawLateMs: () => (plan.timersLateMs === 0 ? 0 : random.exponential(plan.timersLateMs)),
    });
    const { settings } = plan;
    const paths = ground.stores.map((store) => new StorePath(ground, this, store, settings.rpcTimeoutMs));
    this.#driver = new Driver(paths, this.#world());
    const traits = paths.map((path) => path.traits);
    this.#farm = new Farm(traits, ground.farmSettings);
    this.#live().catch((error: unknown) => this.#failed(error));
  }

  #world(): World {
    const { random } = this.#ground;
    const clock = {
      monotonicMs: () => this.clock.monoAt(this.#ground.nowMs),
      wallMs: () => this.clock.wallAt(this.#ground.nowMs),
    };
    const after: World["timers"]["after"] = (delayMs, run) => {
      this.#ground.stir();
      return this.#timers.after(delayMs, run);
    };
    return { clock, timers: { after }, random };
  }

  /** Undefined until the process has found the farm. */
  get peer(): FleasePeer | undefined {
    return this.#node?.runner.peer;
  }

  get isPaused(): boolean {
    return this.#ground.nowMs < this.#pausedUntilMs;
  }

  /** Its present reading, without a trace: for checkers. */
  peek(): Reading {
    const { nowMs } = this.#ground;
    return this.peer!.clock.peek(this.clock.monoAt(nowMs), this.clock.wallAt(nowMs), this.#peeked);
  }

  /** A reading leaves its trace in `hi`. */
  look(): void {
    if (!this.isPaused) this.#node?.runner.now();
  }

  awake(body: () => void): void {
    if (this.isDown) return;
    if (this.isPaused) {
      this.#deferred.push(body);
      return;
    }
    this.#ground.stir();
    body();
  }

  crash(): void {
    this.isDown = true;
    this.#timers.end();
  }

  /** Pauses it; events during the pause are handled in any order. */
  pause(untilMs: number): void {
    if (this.isPaused) return;
    this.#pausedUntilMs = untilMs;
    this.#ground.at(untilMs, () => {
      const { random } = this.#ground;
      const found = this.#deferred.toSorted(() => random.next() - 0.5);
      this.#deferred = [];
      for (const body of found) this.awake(body);
    });
  }

  clocksMoved(): void {
    if (!this.isDown) this.#timers.rearm();
  }

  // The process's work. Promises never settle once it is down

  async #live(): Promise<void> {
    const { plan, random, counters } = this.#ground;
    const { settings } = plan;
    while (!this.#farm.isFounded) {
      await this.#driver.run(this.#farm.look());
      await this.#sleep(random.exponential(settings.rpcTimeoutMs));
    }
    const node = new StoresNode({
      settings,
      driver: this.#driver,
      farm: this.#farm,
      pollMs: this.#ground.farmSettings.pollMs,
      name: this.name,
      incarnation: () => random.below(2 ** 48).toString(16),
      onFault: () => void (counters.clockFaults += 1),
    });
    this.#node = node;
    await node.agree();
    node.provider.attach({
      lost: ({ resource }) => this.#checks.ends(this, resource),
      hint: () => false,
    });
    for (let resource = 0; resource < plan.resources; resource += 1)
      this.#want(node, `r${resource}`).catch((error: unknown) => this.#failed(error));
  }

  /** An error that a user would get ends the process; others are faults of the simulator. */
  #failed(error: unknown): void {
    if (!(error instanceof LeaseholdError)) this.#ground.fail(error);
    this.#ground.counters.errors += 1;
    this.crash();
  }

  async #want({ provider }: StoresNode, resource: string): Promise<void> {
    const { random, plan, counters } = this.#ground;
    const { ttlMinMs, ttlMaxMs, rpcTimeoutMs } = plan.settings;
    for (;;) {
      await this.#sleep(random.exponential(ttlMaxMs / 4));
      const timeoutMs = random.magnitude(rpcTimeoutMs, 4 * ttlMaxMs);
      // Often the longest lease, for which waits are designed.
      const ttlMs = random.chance(0.5) ? ttlMaxMs : random.between(ttlMinMs, ttlMaxMs);
      const request = { resource, ttlMs, timeoutMs, contended: random.chance(0.5), waiting: false };
      const outcome = await provider.attempt(request, this.#impatience());
      if (outcome.kind === "held") counters.refusals += 1;
      if (outcome.kind === "granted") await this.#use(provider, outcome.grant, ttlMs);
    }
  }

  /** Now and then the caller gives up. */
  #impatience(): Cancellation {
    const { random, plan } = this.#ground;
    const caller = { cancelled: false, onCancel: undefined as (() => void) | undefined };
    if (random.chance(0.05))
      void this.#sleep(random.exponential(plan.latencyMs)).then(() => {
        caller.cancelled = true;
        caller.onCancel?.();
      });
    return caller;
  }

  /** Renews now and then, and finally releases, or just stops renewing. */
  async #use(provider: StoresNode["provider"], grant: Grant, ttlMs: number): Promise<void> {
    const { random, counters } = this.#ground;
    const { resource } = grant;
    this.#checks.begins(this, grant);
    for (;;) {
      await this.#sleep(random.between(0, ttlMs / 2));
      if (grant.remainingMs() === 0 || random.chance(0.3)) break;
      if (random.chance(0.2)) continue;
      if (await provider.renew(grant, random.pick([0.5, 0.8, 1]) * ttlMs)) counters.renewals += 1;
    }
    this.#checks.ends(this, resource);
    counters.releases += 1;
    await provider.release(grant);
  }

  #sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.#ground.after(delayMs, () => this.awake(resolve)));
  }
}
