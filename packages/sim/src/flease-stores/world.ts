import type { StoreAnswer, StoreRequest } from "leasehold/inner/delta/store.js";
import { entryRegister } from "leasehold/inner/flease/stores/registers.js";
import { Chaos } from "../kit/chaos.js";
import { startWallMs } from "../kit/clocks.js";
import { type SimStore, uncountedIn } from "../kit/store.js";
import { foundFarm, type StoreNetwork } from "../kit/store-path.js";
import { StoreChecks } from "./checks.js";
import { StoresClient } from "./client.js";
import { Ground } from "./ground.js";
import type { GridPlan } from "./plan.js";

/** Stores, clients and their faults. */
export class StoresWorld extends Ground implements StoreNetwork<StoresClient> {
  readonly #checks: StoreChecks;
  #clients: StoresClient[] = [];
  #born = 0;

  constructor(plan: GridPlan) {
    super(plan);
    this.#checks = new StoreChecks(this);
  }

  /** Runs until the end, or until a violation. */
  async run(): Promise<void> {
    const { clients, every, durationMs } = this.plan;
    const clock = { monotonicMs: () => this.nowMs, wallMs: () => startWallMs + this.nowMs };
    const timers = { after: () => ({ cancel: () => {} }) };
    await foundFarm(this.stores, this.farmSettings, { clock, timers, random: this.random });
    for (let client = 0; client < clients; client += 1) this.#start();
    new Chaos(this).begin([
      { everyMs: every.crashMs, happens: () => this.#crash() },
      { everyMs: every.pauseMs, happens: () => this.#pause() },
      { everyMs: every.silenceMs, happens: () => this.#silence() },
      { everyMs: every.forgetMs, happens: () => this.#forget() },
      { everyMs: every.clockMs, happens: () => this.#moveClocks() },
    ]);
    await this.settleUntil(durationMs, () => this.#checks.afterEvent());
  }

  send(from: StoresClient, to: SimStore, request: StoreRequest, answer: (answer: StoreAnswer) => void): void {
    const { mistake } = this.plan;
    const writesEntry = request.op === "replace" && request.register.startsWith(entryRegister(""));
    if (mistake === "replyBeforeWrite" && writesEntry)
      this.after(0, () => answer({ kind: "written", id: to.id }));
    this.after(this.#delayMs(), () => {
      if (this.nowMs < to.silentUntilMs && this.random.chance(0.5)) return;
      const sent =
        mistake === "staleWriteWins" && writesEntry
          ? { ...request, id: to.id, expected: to.cells(request.register)[0] }
          : request;
      const said = to.perform(sent, from.name);
      if (from.isDown) this.counters.ghosts += 1;
      if (this.nowMs >= to.silentUntilMs) this.after(this.#delayMs(), () => answer(said));
    });
  }

  #delayMs(): number {
    const { random, plan } = this;
    const isLate = random.chance(plan.lateness);
    return random.exponential(isLate ? plan.settings.ttlMaxMs : plan.latencyMs);
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

  /** Any store, and at times all of them: progress is not checked here. */
  #silence(): void {
    const store = this.random.pick(this.stores);
    store.silentUntilMs = this.nowMs + this.random.exponential(this.plan.settings.ttlMaxMs);
  }

  /** Another only after it counts again. */
  #forget(): void {
    if (uncountedIn(this.stores) !== undefined) return;
    this.random.pick(this.stores).forget(this.nowMs);
    this.counters.forgets += 1;
  }

  /** Wall clocks move within ε of each other, or step together; steady clocks change their rates, or stop. */
  #moveClocks(): void {
    const { plan, random } = this;
    const { maxClockSkewMs } = plan.settings;
    const client = random.pick(this.#clients);
    client.clock.offsetMs = this.randomOffsetMs();
    if (plan.wildRates) client.clock.setRate(this.nowMs, random.chance(0.2) ? 0 : random.magnitude(0.3, 3));
    // An unseen step back while a process is paused and its steady clock is wrong, too, is not covered by any
    // assumption (section 1).
    const isSeen = uncountedIn(this.stores) === undefined && this.#clients.every((each) => !each.isPaused);
    if (plan.stepsTogether && isSeen && random.chance(0.1)) {
      // Every process looks at its clocks before and after: a step is not hidden between two looks.
      for (const each of this.#clients) each.look();
      this.shared.offsetMs += random.between(-20, 20) * maxClockSkewMs;
    }
    for (const each of this.#clients) each.clocksMoved();
  }
}
