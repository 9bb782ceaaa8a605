import type { Ask } from "../../src/delta/effects.js";
import { Farm } from "../../src/delta/farm/farm.js";
import { decodeFarmCell, type FarmCell, mergeFarmCells } from "../../src/delta/farm/farm-cell.js";
import type { DeltaSettings, ProtocolEnvironment } from "../../src/delta/lease-protocol.js";
import { clockRateErrorDefault, stretched } from "../../src/lease/clock-rates.js";
import { farmRegister, type StoreAnswer } from "../../src/delta/store.js";
import type { LeaseholdError } from "../../src/lease/errors.js";
import { SharedWall, SimClock } from "../kit/clocks.js";
import type { SimRandom } from "../kit/random.js";
import { SimWorld } from "../kit/world.js";
import { StorageChaos } from "./chaos.js";
import { type StorageCounters, storageCounters } from "./counters.js";
import type { StorageInvariant } from "./invariants.js";
import { Latency } from "./latency.js";
import type { Claim, StorageReport, StorageObserver, WorldView } from "./observer.js";
import type { StoragePlan } from "./plan.js";
import { SimParty } from "./party.js";
import { startProgram } from "./programs/index.js";
import { guardDelayMs } from "./programs/holder.js";
import type { Stage } from "./programs/stage.js";
import { SimStore } from "./store.js";

export interface StorageWorldOptions {
  readonly plan: StoragePlan;
  readonly random: SimRandom;
  readonly checkers: (view: WorldView, report: StorageReport) => readonly StorageObserver[];
  readonly story?: ((line: string) => void) | undefined;
  readonly asserted?: ((invariant: StorageInvariant) => boolean) | undefined;
}

/** As few as may be, so that they have to be raised all the time. */
const epochsAhead = { atomic: 4n, slotted: 4n << 32n };

/** Stores and processes. */
export class StorageWorld extends SimWorld<StorageInvariant, StorageCounters> implements WorldView {
  readonly plan: StoragePlan;
  readonly claims = new Set<Claim>();
  readonly processes: SimParty[] = [];
  readonly stores: readonly SimStore[];
  readonly waitMs: number;
  readonly settledMs: number;
  readonly #observers: readonly StorageObserver[];
  /** Looked at often, and seldom changed. */
  readonly #cells = new WeakMap<Uint8Array, FarmCell>();
  readonly #settings: DeltaSettings;
  readonly #latency: Latency;
  readonly #wall = new SharedWall();
  readonly #leaders = new Map<SimParty, () => boolean>();
  readonly #chaos = new StorageChaos(this);
  #guardToken = 0n;

  constructor({ plan, random, checkers, story, asserted }: StorageWorldOptions) {
    super({ random, counters: storageCounters(), story, asserted });
    this.plan = plan;
    this.stores = plan.kinds.map((kind, index) => new SimStore(kind, `s${index}`));
    this.#latency = new Latency(plan, random);
    this.waitMs = plan.leaseMs + 6 * plan.delayMs;
    // What was written before, and the holds that rest on it, are over after two waits.
    this.settledMs =
      plan.stableFromMs === 0 ? 0 : plan.stableFromMs + 2 * stretched(this.waitMs, clockRateErrorDefault);
    this.#settings = {
      leaseMsMax: plan.leaseMs,
      delayMs: plan.delayMs,
      pollMs: Math.max(1, plan.delayMs / 3),
      clockRateError: plan.clockRateError,
    };
    this.#observers = checkers(this, this.report);
    this.#found();
  }

  get recovering(): boolean {
    const isRecent = (atMs: number) => this.nowMs >= atMs && this.nowMs - atMs < 3 * this.waitMs;
    const hasChanged = this.stores.some(
      (store) => isRecent(store.forgotAtMs) || isRecent(store.silentFromMs),
    );
    return hasChanged || this.uncounted !== undefined;
  }

  get uncounted(): SimStore | undefined {
    if (this.stores.every(({ forgotAtMs }) => forgotAtMs === -Infinity)) return undefined;
    return this.stores.find((store) => {
      const answer = store.perform({ op: "read", register: farmRegister }, "");
      const cell = mergeFarmCells(
        answer.kind === "cells" ? answer.cells.map((bytes) => this.#cellIn(bytes)) : [],
      );
      return cell?.id !== store.id || cell.state !== "ready";
    });
  }

  #cellIn(bytes: Uint8Array): FarmCell {
    const cell = this.#cells.get(bytes) ?? decodeFarmCell(bytes);
    this.#cells.set(bytes, cell);
    return cell;
  }

  run(): void {
    const { plan } = this;
    for (let index = 0; index < plan.processes; index += 1) this.start(index, 0);
    this.#chaos.begin();
    this.#look();
    for (let event = this.next(plan.endMs); event !== undefined; event = this.next(plan.endMs)) event.run();
    if (this.violation !== undefined) return;
    this.nowMs = plan.endMs;
    this.tell((observer) => observer.over?.());
  }

  tell(told: (observer: StorageObserver) => void): void {
    for (const observer of this.#observers) told(observer);
  }

  say(text: string): void {
    this.hash.text(text);
    this.story?.(text);
  }

  /** Starts a process, or the next incarnation of one. */
  start(index: number, incarnation: number): void {
    const { plan, random } = this;
    const clock = new SimClock(this.#wall, random.between(0, 1e6), false);
    clock.setRate(this.nowMs, 1 + plan.clockDrift * random.pick([-1, 0, 1]));
    // A time service slews both clocks; or quartz is off, and the system's is put right.
    if (random.chance(0.5)) clock.slew(this.nowMs, clock.rate);
    const farm = this.#farm();
    const party = new SimParty(this, index, `p${index}.${incarnation}`, clock, farm);
    this.processes[index] = party;
    this.say(`${party.writer} starts`);
    party.tend(plan.delayMs / 2, () => startProgram(this.#stageOf(party)));
    if (plan.lifeMs === Infinity) return;
    const endMs = this.nowMs + random.between(0.5, 1) * plan.lifeMs;
    this.at(endMs, () => this.#chaos.crash(party));
  }

  failed(from: SimParty, error: LeaseholdError): void {
    this.say(`${from.writer}: ${error.code}`);
    this.counters.errors += 1;
    if (error.code !== "STORE_FORGOTTEN") this.report("one-farm", `${from.writer}: ${error.message}`);
  }

  crash(party: SimParty): void {
    party.isAlive = false;
    this.#leaders.delete(party);
    this.say(`${party.writer} crashes`);
    for (const claim of this.claims) if (claim.party === party) this.claims.delete(claim);
    this.tell((observer) => observer.disturbed?.(party));
  }

  pause(party: SimParty, pauseMs: number): void {
    party.pausedUntilMs = this.nowMs + pauseMs;
    this.say(`${party.writer} is stopped for ${pauseMs.toFixed(0)} ms`);
    this.tell((observer) => observer.disturbed?.(party));
  }

  tears(from: SimParty, requests: Ask["requests"]): ((store: number) => boolean) | undefined {
    const { plan, random, counters } = this;
    const isWrite = requests.some((request) => request?.op === "replace" || request?.op === "put");
    if (!isWrite || plan.tornRate === 0 || !random.chance(plan.tornRate)) return undefined;
    counters.tornWrites += 1;
    this.#chaos.crash(from);
    return () => random.chance(0.5);
  }

  /** A request goes to a store, takes effect there, and its answer comes back: each in its own time, or never. */
  send(
    from: SimParty,
    store: number,
    request: Ask["requests"][number] & object,
    answer: (answer: StoreAnswer) => void,
  ): void {
    const target = this.stores[store]!;
    const { effectMs, answerMs } = this.#latency.draw(target, this.nowMs);
    if (effectMs === Infinity) return;
    const inOrderMs = target.inOrder(request, from.writer, effectMs);
    if (request.op !== "read" && inOrderMs - this.nowMs > this.plan.delayMs) this.counters.lateWrites += 1;
    this.at(inOrderMs, () => {
      const said = target.perform(request, from.writer);
      this.at(Math.max(answerMs, inOrderMs), () => answer(said));
    });
  }

  #farm(): Farm {
    const { delayMs } = this.plan;
    const same = { durable: true, bytesMax: 65_536, pollMs: delayMs, delayMs };
    const traits = this.stores.map(({ name, kind }) => ({ ...same, name, kind }));
    return new Farm(traits, this.#settings, epochsAhead);
  }

  /** All stores know the farm before the run begins: how one is founded is not what is looked at here. */
  #found(): void {
    const look = this.#farm().look();
    const now = { monotonicMs: 0, wallMs: 0 };
    for (let answers: (StoreAnswer | undefined)[] = []; ;) {
      const step = look.next({ now, cancelled: false, answers });
      if (step.done === true) return;
      const requests = step.value.kind === "ask" ? step.value.requests : [];
      answers = requests.map((request, store) => request && this.stores[store]!.perform(request, "founder"));
    }
  }

  #stageOf(party: SimParty): Stage {
    const { plan, random, counters } = this;
    const environment: ProtocolEnvironment = {
      farm: party.farm,
      writer: party.writer,
      random,
      settings: this.#settings,
    };
    const isUnstable = () => this.nowMs < plan.stableFromMs;
    const stage: Stage = {
      plan,
      party,
      environment,
      random,
      counters,
      get unstable() {
        return isUnstable();
      },
      tell: (told) => this.tell(told),
      begin: (claim) => {
        this.claims.add(claim);
        this.tell((observer) => observer.began?.(claim));
      },
      end: (claim) => {
        this.claims.delete(claim);
        this.tell((observer) => observer.ended?.(claim));
      },
      guard: (claim) => this.at(this.nowMs + guardDelayMs(stage), () => this.#guard(claim)),
      leads: (asked) => this.#leaders.set(party, asked),
      say: (text) => this.say(text),
    };
    return stage;
  }

  /** What is guarded refuses a token smaller than the greatest that it has seen. */
  #guard(claim: Claim): void {
    if (claim.token < this.#guardToken) {
      this.counters.guardRefusals += 1;
      return;
    }
    this.#guardToken = claim.token;
    this.counters.guardedWrites += 1;
    this.tell((observer) => observer.guarded?.(claim));
  }

  #look(): void {
    const leaders = [...this.#leaders].filter(([, asked]) => asked()).map(([party]) => party);
    this.counters.leaderships += leaders.length === 1 ? 1 : 0;
    this.tell((observer) => observer.looked?.(leaders));
    this.at(this.nowMs + this.plan.delayMs / 2, () => this.#look());
  }
}
