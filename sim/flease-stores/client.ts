import { ownerName } from "../../src/flease/protocol/ballot.js";
import { emptyReading } from "../../src/flease/protocol/clock.js";
import type { Reading } from "../../src/flease/protocol/clock.js";
import { Message } from "../../src/flease/protocol/message.js";
import { FleasePeer } from "../../src/flease/peer.js";
import type { FleasePeerSink } from "../../src/flease/peer.js";
import { Operation, type Slot } from "../../src/flease/protocol/slot.js";
import { Agreement } from "../../src/flease/stores/agreement.js";
import { StoreMedium } from "../../src/flease/stores/medium.js";
import { StoreAcceptor } from "../../src/flease/stores/store-acceptor.js";
import { SimClock } from "../kit/clocks.js";
import { EventCode, Task } from "../kit/events.js";
import { StorePath } from "./path.js";
import type { GridWorld } from "./world.js";

const maintainEveryMs = 100;

/** A process of the grid: the product's proposer and medium, and a program that takes, renews and gives back resources. */
export class GridClient {
  readonly name: string;
  readonly clock: SimClock;
  readonly peer: FleasePeer;
  isDown = false;
  readonly #world: GridWorld;
  readonly #medium: StoreMedium;
  readonly #ignored = new Message();
  readonly #wake: Task;
  readonly #peeked = emptyReading();
  #pausedUntilMs = 0;
  /** By slot handle: a slot that has been given back has forgotten its resource. */
  readonly #wanted = new Map<number, string>();
  /** What happened to it while it was stopped. */
  #deferred: (() => void)[] = [];

  constructor(world: GridWorld, name: string) {
    const { plan, random } = world;
    const { settings } = plan;
    this.#world = world;
    this.name = name;
    this.clock = new SimClock(world.shared, random.between(0, 1e6), true);
    this.clock.offsetMs = world.randomOffsetMs();
    if (!plan.wildRates) this.clock.setRate(world.nowMs, 1 + random.between(-1, 1) * plan.clockDrift);
    const first = { owner: this.#ownerName(), seed: random.below(2 ** 32), acceptor: false };
    const [mono, wall] = [this.clock.monoAt(world.nowMs), this.clock.wallAt(world.nowMs)];
    this.peer = new FleasePeer(settings, first, mono, wall, this.#sink());
    const path = new StorePath(world, this);
    const visiting = {
      acceptor: new StoreAcceptor(settings),
      agreement: new Agreement(settings, world.stores.length),
      stores: world.stores.length,
      idOf: (store: number) => world.knownIds[store]!,
      now: () => this.now(),
      timeoutMs: settings.rpcTimeoutMs,
    };
    this.#medium = new StoreMedium(visiting, (protocol, done) => path.run(protocol, done), {
      deliver: (store, reply) => this.peer.receive(store, reply, this.now(), this.#ignored),
      heard: () => undefined,
      visited: () => this.#rearm(),
    });
    this.#wake = new Task(EventCode.wake, () => this.act(() => this.#tick()));
    this.#maintain();
    for (let resource = 0; resource < plan.resources; resource += 1) this.#want(`r${resource}`);
  }

  get isPaused(): boolean {
    return this.#world.nowMs < this.#pausedUntilMs;
  }

  now(): Reading {
    const { nowMs } = this.#world;
    return this.peer.read(this.clock.monoAt(nowMs), this.clock.wallAt(nowMs));
  }

  /** What it would read, without a trace: for those who check. */
  peek(): Reading {
    const { nowMs } = this.#world;
    return this.peer.peek(this.clock.monoAt(nowMs), this.clock.wallAt(nowMs), this.#peeked);
  }

  /** A reading leaves its trace in `hi`. */
  look(): void {
    if (!this.isPaused) this.now();
  }

  /** Does something as soon as the process runs. */
  act(body: () => void): void {
    if (this.isDown) return;
    if (this.isPaused) {
      this.#deferred.push(body);
      return;
    }
    body();
    this.#rearm();
  }

  crash(): void {
    this.isDown = true;
    this.#world.cancel(this.#wake);
  }

  /** Stops it; what arrives meanwhile it finds in any order. */
  pause(untilMs: number): void {
    if (this.isPaused) return;
    this.#pausedUntilMs = untilMs;
    this.#world.at(untilMs, () => {
      const { random } = this.#world;
      const found = this.#deferred.toSorted(() => random.next() - 0.5);
      this.#deferred = [];
      for (const body of found) this.act(body);
    });
  }

  clocksMoved(): void {
    this.#rearm();
  }

  #tick(): void {
    this.peer.tick(this.now());
  }

  #rearm(): void {
    if (this.isDown) return;
    this.#world.wake(this.#wake, this.clock.timeOfMono(this.peer.nextDueMono));
  }

  #maintain(): void {
    if (this.isDown) return;
    this.act(() => this.peer.maintain(this.now()));
    this.#world.at(this.#world.nowMs + maintainEveryMs, () => this.#maintain());
  }

  // The program

  #want(resource: string): void {
    const { random, plan, nowMs } = this.#world;
    const pauseMs = random.exponential(plan.settings.ttlMaxMs / 4);
    this.#world.at(nowMs + pauseMs, () => this.act(() => this.#acquire(resource)));
  }

  #acquire(resource: string): void {
    const { random, plan } = this.#world;
    const { ttlMinMs, ttlMaxMs } = plan.settings;
    if (this.peer.fault !== undefined || this.peer.proposer.slotOf(resource) !== undefined) {
      this.#want(resource);
      return;
    }
    const giveUpMs = random.magnitude(plan.settings.rpcTimeoutMs, 4 * ttlMaxMs);
    // Often the longest: that is what waits are made for.
    const ttlMs = random.chance(0.5) ? ttlMaxMs : random.between(ttlMinMs, ttlMaxMs);
    const slot = this.peer.proposer.acquire(resource, ttlMs, giveUpMs, random.chance(0.5), this.now());
    this.#wanted.set(slot.index, resource);
    if (random.chance(0.05)) {
      this.#world.at(this.#world.nowMs + random.exponential(plan.latencyMs), () =>
        this.act(() => this.#cancel(resource)),
      );
    }
  }

  #cancel(resource: string): void {
    const slot = this.peer.proposer.slotOf(resource);
    if (slot?.operation === Operation.acquire) this.peer.proposer.cancel(slot);
  }

  /** Renews now and then, and at last gives back, or just stops renewing. */
  #work(slot: Slot, token: number): void {
    const { random, nowMs } = this.#world;
    const nextMs = nowMs + random.between(0, slot.ttl / 2);
    this.#world.at(nextMs, () =>
      this.act(() => {
        if (slot.token !== token || !slot.holding) return;
        if (random.chance(0.3)) {
          this.#end(slot);
          return;
        }
        if (random.chance(0.8) && slot.operation === Operation.none)
          this.peer.proposer.renew(slot, random.pick([0.5, 0.8, 1]) * slot.ttl, this.now());
        if (slot.holding) this.#work(slot, token);
      }),
    );
  }

  #end(slot: Slot): void {
    const { resource } = slot;
    this.#world.checks.ends(this, resource);
    this.#world.counters.releases += 1;
    this.peer.proposer.release(slot, this.now());
    this.#want(resource);
  }

  #sink(): FleasePeerSink {
    const soon = (body: () => void) => this.#world.at(this.#world.nowMs, () => this.act(body));
    return {
      send: (to, message) => this.#medium.send(to, message),
      acquired: (slot) => {
        this.#world.checks.begins(this, slot);
        this.#work(slot, slot.token);
      },
      refused: (slot) => {
        this.#world.counters.refusals += 1;
        this.#want(this.#wanted.get(slot.index)!);
      },
      unanswered: (slot) => this.#want(this.#wanted.get(slot.index)!),
      renewed: (_slot, longer) => {
        if (longer) this.#world.counters.renewals += 1;
      },
      lapsed: (slot) => {
        this.#world.checks.ends(this, slot.resource);
        soon(() => this.#end(slot));
      },
      tell: () => false,
      hinted: () => false,
      clockFault: () => {
        const { nowMs } = this.#world;
        this.#world.counters.clockFaults += 1;
        this.peer.restart(this.#ownerName(), this.clock.monoAt(nowMs), this.clock.wallAt(nowMs));
      },
    };
  }

  #ownerName(): string {
    return ownerName(this.name, this.#world.random.below(2 ** 48).toString(16));
  }
}
