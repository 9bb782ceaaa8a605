import { ownerName } from "../../src/flease/protocol/ballot.js";
import { emptyReading } from "../../src/flease/protocol/clock.js";
import type { Reading } from "../../src/flease/protocol/clock.js";
import type { FleasePeer, PeerOutcomes } from "../../src/flease/peer.js";
import { Operation, type Slot } from "../../src/flease/protocol/slot.js";
import type { FleaseRunner } from "../../src/flease/runner.js";
import { RunnerOnStores } from "../../src/flease/stores/runner-on-stores.js";
import { SimClock } from "../kit/clocks.js";
import { SteadyTimers } from "../kit/steady-timers.js";
import type { StoreChecks } from "./checks.js";
import type { Ground } from "./ground.js";
import { StorePath } from "./path.js";

/** A process: what the product runs on stores, and a program that takes, renews and gives back resources. */
export class StoresClient {
  readonly name: string;
  readonly clock: SimClock;
  readonly peer: FleasePeer;
  isDown = false;
  readonly #ground: Ground;
  readonly #checks: StoreChecks;
  readonly #runner: FleaseRunner;
  readonly #timers: SteadyTimers;
  readonly #peeked = emptyReading();
  #pausedUntilMs = 0;
  /** By slot handle: a slot that has been given back has forgotten its resource. */
  readonly #wanted = new Map<number, string>();
  /** What happened to it while it was stopped. */
  #deferred: (() => void)[] = [];

  constructor(ground: Ground, checks: StoreChecks, name: string) {
    const { plan, random } = ground;
    this.#ground = ground;
    this.#checks = checks;
    this.name = name;
    this.clock = new SimClock(ground.shared, random.between(0, 1e6), true);
    this.clock.offsetMs = ground.randomOffsetMs();
    if (!plan.wildRates) this.clock.setRate(ground.nowMs, 1 + random.between(-1, 1) * plan.clockDrift);
    this.#timers = new SteadyTimers(ground, {
      clock: this.clock,
      turn: (_wake, body) => this.act(body),
      drawLateMs: () => (plan.timersLateMs === 0 ? 0 : random.exponential(plan.timersLateMs)),
    });
    const clock = {
      monotonicMs: () => this.clock.monoAt(ground.nowMs),
      wallMs: () => this.clock.wallAt(ground.nowMs),
    };
    const path = new StorePath(ground, this);
    const { runner } = new RunnerOnStores({
      settings: plan.settings,
      world: { clock, timers: this.#timers, random },
      stores: ground.stores.length,
      idOf: (store) => ground.knownIds[store]!,
      runVisit: (protocol, done) => path.run(protocol, done),
      owner: () => ownerName(name, random.below(2 ** 48).toString(16)),
      clockFault: () => void (ground.counters.clockFaults += 1),
      maintained: () => {},
      heard: () => {},
      visited: () => {},
    });
    this.#runner = runner;
    this.peer = runner.peer;
    this.peer.attach(this.#outcomes());
    runner.maintain();
    for (let resource = 0; resource < plan.resources; resource += 1) this.#want(`r${resource}`);
  }

  get isPaused(): boolean {
    return this.#ground.nowMs < this.#pausedUntilMs;
  }

  /** What it would read, without a trace: for those who check. */
  peek(): Reading {
    const { nowMs } = this.#ground;
    return this.peer.clock.peek(this.clock.monoAt(nowMs), this.clock.wallAt(nowMs), this.#peeked);
  }

  /** A reading leaves its trace in `hi`. */
  look(): void {
    if (!this.isPaused) this.#runner.now();
  }

  /** Does something as soon as the process runs. */
  act(body: () => void): void {
    if (this.isDown) return;
    if (this.isPaused) this.#deferred.push(body);
    else body();
  }

  crash(): void {
    this.isDown = true;
    this.#timers.end();
  }

  /** Stops it; what arrives meanwhile it finds in any order. */
  pause(untilMs: number): void {
    if (this.isPaused) return;
    this.#pausedUntilMs = untilMs;
    this.#ground.at(untilMs, () => {
      const { random } = this.#ground;
      const found = this.#deferred.toSorted(() => random.next() - 0.5);
      this.#deferred = [];
      for (const body of found) this.act(body);
    });
  }

  clocksMoved(): void {
    if (!this.isDown) this.#timers.rearm();
  }

  // The program

  #want(resource: string): void {
    const { random, plan, nowMs } = this.#ground;
    const pauseMs = random.exponential(plan.settings.ttlMaxMs / 4);
    this.#ground.at(nowMs + pauseMs, () => this.#step(() => this.#acquire(resource)));
  }

  #acquire(resource: string): void {
    const { random, plan } = this.#ground;
    const { ttlMinMs, ttlMaxMs } = plan.settings;
    if (this.peer.fault !== undefined || this.peer.proposer.slotOf(resource) !== undefined) {
      this.#want(resource);
      return;
    }
    const giveUpMs = random.magnitude(plan.settings.rpcTimeoutMs, 4 * ttlMaxMs);
    // Often the longest: that is what waits are made for.
    const ttlMs = random.chance(0.5) ? ttlMaxMs : random.between(ttlMinMs, ttlMaxMs);
    const slot = this.peer.proposer.acquire(
      resource,
      ttlMs,
      giveUpMs,
      random.chance(0.5),
      this.#runner.now(),
    );
    this.#wanted.set(slot.index, resource);
    if (random.chance(0.05)) {
      this.#ground.at(this.#ground.nowMs + random.exponential(plan.latencyMs), () =>
        this.#step(() => this.#cancel(resource)),
      );
    }
  }

  #cancel(resource: string): void {
    const slot = this.peer.proposer.slotOf(resource);
    if (slot?.operation === Operation.acquire) this.peer.proposer.cancel(slot);
  }

  /** Renews now and then, and at last gives back, or just stops renewing. */
  #work(slot: Slot, token: number): void {
    const { random, nowMs } = this.#ground;
    const nextMs = nowMs + random.between(0, slot.ttl / 2);
    this.#ground.at(nextMs, () =>
      this.#step(() => {
        if (slot.token !== token || !slot.holding) return;
        if (random.chance(0.3)) {
          this.#end(slot);
          return;
        }
        if (random.chance(0.8) && slot.operation === Operation.none)
          this.peer.proposer.renew(slot, random.pick([0.5, 0.8, 1]) * slot.ttl, this.#runner.now());
        if (slot.holding) this.#work(slot, token);
      }),
    );
  }

  #end(slot: Slot): void {
    const { resource } = slot;
    this.#checks.ends(this, resource);
    this.#ground.counters.releases += 1;
    this.peer.proposer.release(slot, this.#runner.now());
    this.#want(resource);
  }

  /** The program asks something of its peer. */
  #step(body: () => void): void {
    this.act(() => {
      body();
      this.#runner.poke();
    });
  }

  #outcomes(): PeerOutcomes {
    const { counters } = this.#ground;
    return {
      acquired: (slot) => {
        this.#checks.begins(this, slot);
        this.#work(slot, slot.token);
      },
      refused: (slot) => {
        counters.refusals += 1;
        this.#want(this.#wanted.get(slot.index)!);
      },
      failed: (slot) => this.#want(this.#wanted.get(slot.index)!),
      renewed: (_slot, longer) => {
        if (longer) counters.renewals += 1;
      },
      lapsed: (slot) => {
        this.#checks.ends(this, slot.resource);
        this.#ground.after(0, () => this.#step(() => this.#end(slot)));
      },
      hinted: () => false,
    };
  }
}
