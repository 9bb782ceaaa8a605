import { Chaos } from "../kit/chaos.js";
import type { SimRandom } from "../kit/random.js";
import type { StorageCounters } from "./stage/counters.js";
import type { StorageObserver } from "./stage/observer.js";
import type { SimParty } from "../kit/party.js";
import type { StoragePlan } from "./stage/plan.js";
import type { SimStore } from "../kit/store.js";

/** The parts of the world that faults use. */
export interface Disturbed {
  readonly plan: StoragePlan;
  readonly random: SimRandom;
  readonly counters: StorageCounters;
  readonly processes: readonly SimParty[];
  readonly stores: readonly SimStore[];
  readonly uncounted: SimStore | undefined;
  readonly someoneIsBehind: boolean;
  /** The longest wait of a contender, ms. */
  readonly waitMs: number;
  readonly nowMs: number;
  at(timeMs: number, body: () => void): void;
  start(index: number, incarnation: number): void;
  crash(party: SimParty): void;
  leave(party: SimParty): void;
  pause(party: SimParty, pauseMs: number): void;
  /** The steady clock of its machine stops meanwhile. */
  suspend(party: SimParty, forMs: number): void;
  stepClock(party: SimParty, byMs: number): void;
  replace(store: number): void;
  isBehind(party: SimParty): boolean;
  isSuspended(party: SimParty): boolean;
  tell(told: (observer: StorageObserver) => void): void;
  log(text: string): void;
}

/** The longest absence of a crashed process, in waits of a contender; where lives are short, in δ. */
const downWaits = 2;

/** The longest suspension of a machine, in leases. */
const suspendLeasesMax = 2;

/** The longest time until a process restarts with the new list of stores, in waits of a contender. */
const behindWaits = 4;

/** The faults of shared storage. */
export class StorageHazards {
  readonly #world: Disturbed;

  constructor(world: Disturbed) {
    this.#world = world;
  }

  begin(): void {
    const { plan, random } = this.#world;
    const { stableFromMs, endMs } = plan;
    for (let store = 0; store < plan.silent; store += 1) this.#silence(store);
    const chaos = new Chaos(this.#world);
    chaos.begin([
      {
        everyMs: plan.crashEveryMs,
        untilMs: endMs,
        happens: () => this.crash(random.pick(this.#world.processes)),
      },
      { everyMs: plan.pauseEveryMs, untilMs: stableFromMs, happens: () => this.#pause() },
      { everyMs: plan.stallEveryMs, untilMs: stableFromMs, happens: () => this.#stall() },
      { everyMs: plan.stepEveryMs, untilMs: stableFromMs, happens: () => this.#step() },
      { everyMs: plan.suspendEveryMs, untilMs: stableFromMs, happens: () => this.#suspend() },
    ]);
    // A single store, or one of three while another is silent, is already more than a minority.
    if (plan.silent > 0 || plan.kinds.length === 1) return;
    this.#forgetOften(random.exponential(plan.forgetEveryMs));
    chaos.begin([{ everyMs: plan.replaceEveryMs, untilMs: endMs, happens: () => this.#replace() }]);
  }

  #silence(store: number): void {
    const { plan, random, stores, counters } = this.#world;
    stores[store]!.silentFromMs = random.chance(0.5) ? 0 : random.next() * plan.endMs;
    counters.silentStores += 1;
  }

  /** The process crashes, and another incarnation of it starts later. */
  crash(party: SimParty): void {
    if (!party.isAlive) return;
    this.#world.counters.crashes += 1;
    this.#world.crash(party);
    this.#startAgain(party);
  }

  /** The process ends, cleanly or not, and another incarnation of it starts later. */
  end(party: SimParty): void {
    if (!party.isAlive) return;
    if (this.#world.random.chance(0.5) || this.#world.isSuspended(party)) {
      this.crash(party);
      return;
    }
    this.#world.leave(party);
    this.#startAgain(party);
  }

  #startAgain(party: SimParty): void {
    const world = this.#world;
    const downMs = world.plan.lifeMs === Infinity ? downWaits * world.waitMs : world.plan.delayMs;
    const incarnation = Number(party.writer.split(".")[1]) + 1;
    const startMs = world.nowMs + world.random.next() * downMs;
    world.at(startMs, () => world.start(party.index, incarnation));
  }

  #pause(): void {
    const world = this.#world;
    const { plan, random } = world;
    const party = random.pick(world.processes);
    const pauseMs = Math.min(random.next() * plan.pauseMaxMs, plan.stableFromMs - world.nowMs);
    if (!party.isAlive || pauseMs <= 0) return;
    world.counters.pauses += 1;
    world.pause(party, pauseMs);
  }

  #suspend(): void {
    const world = this.#world;
    const { plan, random } = world;
    const party = random.pick(world.processes);
    const forMs = Math.min(random.next() * suspendLeasesMax * plan.leaseMs, plan.stableFromMs - world.nowMs);
    if (!party.isAlive || forMs <= 0) return;
    world.counters.suspensions += 1;
    world.suspend(party, forMs);
  }

  /** In either direction. */
  #step(): void {
    const world = this.#world;
    const { plan, random } = world;
    const party = random.pick(world.processes);
    if (!party.isAlive) return;
    world.counters.clockSteps += 1;
    world.stepClock(party, random.between(-1, 1) * plan.stepLeasesMax * plan.leaseMs);
  }

  #stall(): void {
    const world = this.#world;
    const { plan, random } = world;
    const store = random.pick(world.stores);
    store.stalledUntilMs = Math.min(world.nowMs + random.next() * plan.pauseMaxMs, plan.stableFromMs);
    world.counters.stalls += 1;
    world.log(`${store.name} stalls until ${store.stalledUntilMs.toFixed(0)}`);
  }

  /**
   * One store loses everything, perhaps twice in a row. Another may lose everything only after this one
   * counts again.
   */
  #forgetOften(inMs: number): void {
    const world = this.#world;
    const { plan, random } = world;
    if (plan.forgetEveryMs === Infinity || world.nowMs + inMs > plan.endMs) return;
    world.at(world.nowMs + inMs, () => {
      // The second loss comes so soon that some processes have seen only the first marker and others only the
      // second, or while they record what they saw.
      const soonMs = random.next() * random.pick([1, 4]) * plan.delayMs;
      this.#forgetOften(random.chance(0.4) ? soonMs : random.exponential(plan.forgetEveryMs));
      if (world.someoneIsBehind) return;
      const store = world.uncounted ?? random.pick(world.stores);
      store.forget(world.nowMs);
      world.counters.forgettings += 1;
      world.log(`${store.name} forgets`);
      world.tell((observer) => observer.disturbed?.(undefined));
    });
  }

  /**
   * A new store replaces another, once all others count and all processes know them. The old store keeps
   * serving processes that have it in their list. Each process restarts with the new list at its own time.
   */
  #replace(): void {
    const world = this.#world;
    const { random } = world;
    if (world.uncounted !== undefined || world.someoneIsBehind) return;
    world.counters.replacements += 1;
    world.replace(random.below(world.stores.length));
    for (const party of world.processes)
      world.at(world.nowMs + random.next() * behindWaits * world.waitMs, () => {
        if (world.isBehind(party)) this.end(party);
      });
  }
}
