import { Chaos } from "../../kit/chaos.js";
import { HolderProcess } from "./holder.js";
import type { HoldersStage } from "./stage.js";

const downMsMax = 3_000;
const pauseMsMax = 8_000;
const cutMsMax = 8_000;
const stepMsMax = 20_000;

/**
 * Where steps are frequent, half of them are smaller than a tenth of a lease: only below that do both clocks
 * still count.
 */
const smallStepLeases = 0.12;

/** The share of clean exits. */
const orderlyRate = 0.25;

/** Processes with leases, and their faults. */
export class Holders {
  readonly #stage: HoldersStage;
  readonly #processes: HolderProcess[] = [];
  #starts = 0;

  constructor(stage: HoldersStage) {
    this.#stage = stage;
  }

  begin(): void {
    const { plan, world } = this.#stage;
    for (let index = 0; index < plan.processes; index += 1) this.#start(index);
    const untilMs = world.plan.stableFromMs;
    new Chaos({
      random: this.#stage.random,
      at: (timeMs, body) => world.at(timeMs, body),
      get nowMs() {
        return world.nowMs;
      },
    }).begin([
      { everyMs: plan.crashEveryMs, untilMs, happens: () => this.#end() },
      { everyMs: plan.pauseEveryMs, untilMs, happens: () => this.#pause() },
      { everyMs: plan.cutEveryMs, untilMs, happens: () => this.#cut() },
      { everyMs: plan.stepEveryMs, untilMs, happens: () => this.#step() },
    ]);
    // One process dies when there are no other faults, so that the guarantees for that case can be checked.
    world.at(this.#stage.settledFromMs, () => this.#crash(this.#any()));
  }

  #start(index: number): void {
    this.#starts += 1;
    const holder = new HolderProcess(this.#stage, index, this.#starts);
    this.#processes[index] = holder;
    holder.begin();
  }

  #any(): HolderProcess {
    return this.#stage.random.pick(this.#processes);
  }

  #end(): void {
    const holder = this.#any();
    if (!this.#stage.random.chance(orderlyRate)) {
      this.#crash(holder);
      return;
    }
    if (!holder.isAlive) return;
    this.#stage.world.counters.departures += 1;
    holder.leave();
    this.#startAgain(holder);
  }

  #crash(holder: HolderProcess): void {
    const { aftermath, settledFromMs, world } = this.#stage;
    if (!holder.isAlive) return;
    world.counters.holderCrashes += 1;
    holder.crash();
    const { writer } = holder.party;
    world.at(settledFromMs, () => aftermath.died(writer));
    this.#startAgain(holder);
  }

  #startAgain({ party }: HolderProcess): void {
    const { random, world } = this.#stage;
    world.after(random.next() * downMsMax, () => this.#start(party.index));
  }

  #pause(): void {
    const { random, world } = this.#stage;
    const { party } = this.#any();
    const forMs = Math.min(random.next() * pauseMsMax, world.plan.stableFromMs - world.nowMs);
    world.counters.holderPauses += 1;
    world.log(`${party.writer} stands still for ${forMs.toFixed(0)} ms`);
    party.pausedUntilMs = world.nowMs + forMs;
  }

  #cut(): void {
    const { random, world } = this.#stage;
    const untilMs = Math.min(world.nowMs + random.next() * cutMsMax, world.plan.stableFromMs);
    const holder = this.#any();
    world.counters.holderCuts += 1;
    world.log(`${holder.party.writer} is cut off until ${untilMs.toFixed(0)}`);
    holder.cut({ untilMs, breaks: random.chance(0.5) });
  }

  /** Steps a system clock in either direction. */
  #step(): void {
    const { plan, random, world } = this.#stage;
    const { clock, party } = this.#any();
    const anyMs = random.between(-stepMsMax, stepMsMax);
    const isSmall = world.plan.holderStepEveryMs !== undefined && Math.floor(anyMs) % 2 === 0;
    const byMs = isSmall ? (anyMs / stepMsMax) * smallStepLeases * plan.ttlMs : anyMs;
    world.counters.clockSteps += 1;
    world.log(`the system clock of ${party.writer} steps by ${byMs.toFixed(0)} ms`);
    clock.offsetMs += byMs;
  }
}
