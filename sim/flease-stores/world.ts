import { forgettingWaitMs } from "../../src/flease/stores/store-acceptor.js";
import { Chaos } from "../kit/chaos.js";
import { StoreChecks } from "./checks.js";
import { StoresClient } from "./client.js";
import { Ground } from "./ground.js";
import type { GridPlan } from "./plan.js";

/** How far a store's wait after it has forgotten may come short, if the steady clock that counts it is wild. */
const someMoreMs = 1;

/** Stores, clients and what happens to them. */
export class StoresWorld extends Ground {
  readonly #checks: StoreChecks;
  #clients: StoresClient[] = [];
  #born = 0;

  constructor(plan: GridPlan) {
    super(plan);
    this.#checks = new StoreChecks(this);
    for (let client = 0; client < plan.clients; client += 1) this.#start();
    const { every } = plan;
    new Chaos(this).begin([
      { everyMs: every.crashMs, happens: () => this.#crash() },
      { everyMs: every.pauseMs, happens: () => this.#pause() },
      { everyMs: every.silenceMs, happens: () => this.#silence() },
      { everyMs: every.forgetMs, happens: () => this.#forget() },
      { everyMs: every.clockMs, happens: () => this.#moveClocks() },
    ]);
  }

  /** Runs until the end, or until something is wrong. */
  run(): void {
    const { durationMs } = this.plan;
    for (let event = this.next(durationMs); event !== undefined; event = this.next(durationMs)) {
      event.run();
      this.#checks.afterEvent();
    }
  }

  #start(): void {
    this.#born += 1;
    this.#clients.push(new StoresClient(this, this.#checks, `c${this.#born}`));
  }

  #crash(): void {
    const victim = this.random.pick(this.#clients);
    victim.crash();
    this.#clients = this.#clients.filter((client) => client !== victim);
    this.counters.crashes += 1;
    this.#start();
  }

  #pause(): void {
    const victim = this.random.pick(this.#clients);
    victim.pause(this.nowMs + this.random.exponential(this.plan.settings.ttlMaxMs));
    this.counters.pauses += 1;
  }

  /** Any store, and at times all of them: progress is not what is looked at here. */
  #silence(): void {
    const store = this.random.pick(this.stores);
    store.silentUntilMs = this.nowMs + this.random.exponential(this.plan.settings.ttlMaxMs);
  }

  /** Within the assumption: fewer than a majority have forgotten and do not count yet. */
  #forget(): void {
    const store = this.random.below(this.stores.length);
    const missing = this.stores.filter(({ id }, index) => id !== this.knownIds[index]).length;
    if (this.knownIds[store] !== this.stores[store]!.id || missing + 1 > (this.stores.length - 1) / 2) return;
    this.stores[store]!.forget(this.nowMs);
    this.counters.forgets += 1;
    const { id } = this.stores[store]!;
    this.at(this.nowMs + this.#forgettingWaitMs(), () => {
      this.knownIds[store] = id;
    });
  }

  /** Counted on a steady clock that is as wrong as it may be. */
  #forgettingWaitMs(): number {
    const { plan, random } = this;
    if (plan.mistake === "forgottenCountsAtOnce") return 0;
    const { clockRateError, mutualRateError, rpcTimeoutMs } = plan.settings;
    const stretching = plan.mistake === "ratesIgnored" ? 1 + mutualRateError : 1;
    const rate = 1 + random.pick([-1, 0, 1]) * clockRateError;
    const laterMs = random.chance(0.5) ? 0 : random.exponential(rpcTimeoutMs);
    return forgettingWaitMs(plan.settings) / stretching / rate + someMoreMs + laterMs;
  }

  /** Wall clocks move within ε of each other, or step together; steady clocks change their rates, or stop. */
  #moveClocks(): void {
    const { plan, random } = this;
    const { maxClockSkewMs } = plan.settings;
    const client = random.pick(this.#clients);
    client.clock.offsetMs = this.randomOffsetMs();
    if (plan.wildRates) client.clock.setRate(this.nowMs, random.chance(0.2) ? 0 : random.magnitude(0.3, 3));
    // What steps back unseen while a process is stopped and its steady clock is wrong too is not covered by anything (section 1).
    const missing = this.stores.some(({ id }, index) => id !== this.knownIds[index]);
    const isSeen = !missing && this.#clients.every((each) => !each.isPaused);
    if (plan.stepsTogether && isSeen && random.chance(0.1)) {
      // Every process looks at its clocks before and after: a step is not hidden between two looks.
      for (const each of this.#clients) each.look();
      this.shared.offsetMs += random.between(-20, 20) * maxClockSkewMs;
    }
    for (const each of this.#clients) each.clocksMoved();
  }
}
