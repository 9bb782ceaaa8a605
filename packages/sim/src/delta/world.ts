import type { DeltaSettings } from "leasehold/inner/delta/lease-protocol.js";
import type { StoreAnswer, StoreRequest } from "leasehold/inner/delta/store.js";
import { clockRateErrorDefault, stretched } from "leasehold/inner/common/clock-rates.js";
import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import { SharedWall, SimClock } from "../kit/clocks.js";
import type { SimRandom } from "../kit/random.js";
import { SettlingWorld } from "../kit/settling-world.js";
import { type Disturbed, StorageHazards } from "./hazards.js";
import { type StorageCounters, storageCounters } from "./stage/counters.js";
import type { StorageInvariant } from "./stage/invariants.js";
import { Latency } from "./latency.js";
import type { Claim, StorageReport, StorageObserver, WorldView } from "./stage/observer.js";
import { SimParty, type TrueTime } from "../kit/party.js";
import type { StoragePlan } from "./stage/plan.js";
import { epochsAhead, runProcess } from "./programs/index.js";
import type { Stage, Ticket } from "./stage/stage.js";
import { SimStore, uncountedIn } from "../kit/store.js";
import { foundFarm, StorePath, type StoreNetwork } from "../kit/store-path.js";

export interface StorageWorldOptions {
  readonly plan: StoragePlan;
  readonly random: SimRandom;
  readonly checkers: (view: WorldView, report: StorageReport) => readonly StorageObserver[];
  readonly story?: ((line: string) => void) | undefined;
  readonly asserted?: ((invariant: StorageInvariant) => boolean) | undefined;
}

/** The longest duration of a request to the guarded resource, in longest leases. */
const guardLeases = 1.5;

/** Stores and processes. */
export class StorageWorld
  extends SettlingWorld<StorageInvariant, StorageCounters>
  implements WorldView, TrueTime, StoreNetwork<SimParty>, Disturbed
{
  readonly plan: StoragePlan;
  readonly claims = new Set<Claim>();
  readonly processes: SimParty[] = [];
  /** The stores used by processes that start now. */
  readonly stores: SimStore[];
  readonly waitMs: number;
  readonly settledMs: number;
  readonly #observers: readonly StorageObserver[];
  readonly #settings: DeltaSettings;
  readonly #latency: Latency;
  readonly #wall = new SharedWall();
  readonly #clocks = new Map<SimParty, SimClock>();
  readonly #leaders = new Map<SimParty, () => boolean>();
  /** The clean exit of each process. */
  readonly #leaving = new Map<SimParty, () => Promise<void>>();
  readonly #lists = new Map<SimParty, readonly SimStore[]>();
  readonly #hazards: StorageHazards;
  readonly #tickets = new Set<Ticket>();
  #guardToken = 0n;
  /** The last writer, its event, and whether it crashes there. */
  #lastWrite: { readonly from: SimParty; readonly event: number; readonly isTorn: boolean } | undefined;

  constructor({ plan, random, checkers, story, asserted }: StorageWorldOptions) {
    super({ random, counters: storageCounters(), story, asserted });
    this.plan = plan;
    this.stores = plan.kinds.map((kind, index) => new SimStore(kind, `s${index}`));
    this.#latency = new Latency(plan, random);
    this.waitMs = plan.leaseMs + 6 * plan.delayMs;
    // Earlier writes, and the holds based on them, are over after two waits.
    this.settledMs =
      plan.stableFromMs === 0 ? 0 : plan.stableFromMs + 2 * stretched(this.waitMs, clockRateErrorDefault);
    this.#settings = {
      leaseMsMax: plan.leaseMs,
      delayMs: plan.delayMs,
      pollMs: Math.max(1, plan.delayMs / 3),
      clockRateError: plan.clockRateError,
    };
    this.#observers = checkers(this, this.report);
    this.#hazards = new StorageHazards(this);
  }

  get recovering(): boolean {
    const isRecent = (atMs: number) => this.nowMs >= atMs && this.nowMs - atMs < 3 * this.waitMs;
    const hasChanged = this.stores.some(
      (store) => isRecent(store.forgotAtMs) || isRecent(store.silentFromMs),
    );
    return hasChanged || this.uncounted !== undefined || this.someoneIsBehind;
  }

  get uncounted(): SimStore | undefined {
    return uncountedIn(this.stores);
  }

  /** A process that still uses a store which was replaced. */
  get someoneIsBehind(): boolean {
    return this.processes.some((party) => party.isAlive && this.isBehind(party));
  }

  isBehind(party: SimParty): boolean {
    return this.#lists.get(party)?.some((store, index) => store !== this.stores[index]) === true;
  }

  async run(): Promise<void> {
    const { plan } = this;
    const founder = new SimParty(this, -1, "founder", new SimClock(this.#wall, 0, false));
    await foundFarm(this.stores, this.#settings, founder, epochsAhead);
    for (let index = 0; index < plan.processes; index += 1) this.start(index, 0);
    this.#hazards.begin();
    this.#look();
    await this.settleUntil(plan.endMs);
    if (this.violation === undefined) {
      this.nowMs = plan.endMs;
      this.tell((observer) => observer.over?.());
    }
  }

  tell(told: (observer: StorageObserver) => void): void {
    for (const observer of this.#observers) told(observer);
  }

  log(text: string): void {
    this.hash.text(text);
    this.story?.(text);
  }

  /** Starts a process, or the next incarnation of one. */
  start(index: number, incarnation: number): void {
    const { plan, random } = this;
    const clock = new SimClock(this.#wall, random.between(0, 1e6), false);
    clock.setRate(this.nowMs, 1 + plan.clockDrift * random.pick([-1, 0, 1]));
    // A time service slews both clocks; or the quartz is inaccurate, and only the system clock is corrected.
    if (random.chance(0.5)) clock.slew(this.nowMs, clock.rate);
    const party = new SimParty(this, index, `p${index}.${incarnation}`, clock);
    this.processes[index] = party;
    this.#clocks.set(party, clock);
    this.#lists.set(party, this.stores.slice());
    this.log(`${party.writer} starts`);
    this.stir();
    runProcess(this.#stageOf(party)).catch((error: unknown) => this.#failed(party, error));
    if (plan.lifeMs === Infinity) return;
    const endMs = this.nowMs + random.between(0.5, 1) * plan.lifeMs;
    this.at(endMs, () => this.#hazards.end(party));
  }

  /** Handles an expected error of a program or driver. All other errors are faults of the simulator. */
  #failed(from: SimParty, error: unknown): void {
    if (!(error instanceof LeaseholdError)) {
      this.fail(error);
      return;
    }
    this.log(`${from.writer}: ${error.code}`);
    this.counters.errors += 1;
    if (error.code !== "STORE_FORGOTTEN") this.report("one-farm", `${from.writer}: ${error.message}`);
  }

  /** The process crashes. */
  crash(party: SimParty): void {
    party.isGone = true;
    this.log(`${party.writer} crashes`);
    this.#over(party);
  }

  /** A clean exit: programs stop, and drivers release their leases. */
  leave(party: SimParty): void {
    this.log(`${party.writer} leaves`);
    this.#over(party);
    this.stir();
    const gone = () => {
      party.isGone = true;
    };
    void this.#leaving.get(party)?.().then(gone, gone);
    this.counters.departures += 1;
  }

  #over(party: SimParty): void {
    party.isAlive = false;
    this.#leaders.delete(party);
    for (const claim of this.claims) if (claim.party === party) this.claims.delete(claim);
    this.tell((observer) => observer.disturbed?.(party));
  }

  isSuspended(party: SimParty): boolean {
    return this.#clocks.get(party)!.rate === 0;
  }

  pause(party: SimParty, pauseMs: number): void {
    // Otherwise it would continue without a clock.
    if (this.isSuspended(party)) return;
    party.pausedUntilMs = this.nowMs + pauseMs;
    this.log(`${party.writer} is stopped for ${pauseMs.toFixed(0)} ms`);
    this.tell((observer) => observer.disturbed?.(party));
  }

  suspend(party: SimParty, forMs: number): void {
    if (this.isSuspended(party)) return;
    const clock = this.#clocks.get(party)!;
    const { isSlewing, rate } = clock;
    this.pause(party, forMs);
    clock.setRate(this.nowMs, 0);
    this.at(party.pausedUntilMs, () => {
      if (isSlewing) clock.slew(this.nowMs, rate);
      else clock.setRate(this.nowMs, rate);
    });
  }

  stepClock(party: SimParty, byMs: number): void {
    this.#clocks.get(party)!.offsetMs += byMs;
    this.log(`the system clock of ${party.writer} steps by ${byMs.toFixed(0)} ms`);
    this.tell((observer) => observer.disturbed?.(party));
  }

  /** Replaces a store for processes that start from now on. */
  replace(index: number): void {
    const { kind, name } = this.stores[index]!;
    const next = new SimStore(kind, `${name}'`);
    next.forgotAtMs = this.nowMs;
    this.stores[index] = next;
    this.log(`${next.name} takes the place of ${name}`);
    this.tell((observer) => observer.disturbed?.(undefined));
  }

  send(from: SimParty, to: SimStore, request: StoreRequest, answer: (answer: StoreAnswer) => void): void {
    if (!this.#leaves(from, request)) return;
    const { effectMs, answerMs } = this.#latency.draw(to, this.nowMs);
    if (effectMs === Infinity) return;
    const inOrderMs = to.inOrder(request, from.writer, effectMs);
    if (request.op !== "read" && inOrderMs - this.nowMs > this.plan.delayMs) this.counters.lateWrites += 1;
    this.at(inOrderMs, () => {
      const said = to.perform(request, from.writer);
      this.at(Math.max(answerMs, inOrderMs), () => answer(said));
    });
  }

  /**
   * Whether a request leaves its process. The process may crash between writes to several stores; then some
   * stores are never reached.
   */
  #leaves(from: SimParty, { op }: StoreRequest): boolean {
    const { plan, random, counters } = this;
    const last = this.#lastWrite;
    const isSame = last?.from === from && last.event === counters.events;
    if (isSame && last.isTorn) return random.chance(0.5);
    if (isSame || !from.isAlive || op === "read" || op === "list") return !from.isGone;
    const isTorn = plan.tornRate > 0 && random.chance(plan.tornRate);
    this.#lastWrite = { from, event: counters.events, isTorn };
    if (!isTorn) return true;
    counters.tornWrites += 1;
    this.#hazards.crash(from);
    return random.chance(0.5);
  }

  #pathsOf(party: SimParty): StorePath<SimParty>[] {
    return this.stores.map((store) => new StorePath(this, party, store, this.plan.delayMs));
  }

  #stageOf(party: SimParty): Stage {
    const { plan, random, counters } = this;
    return {
      plan,
      party,
      stores: this.#pathsOf(party),
      settings: this.#settings,
      random,
      counters,
      isUnstable: () => this.nowMs < plan.stableFromMs,
      tell: (told) => this.tell(told),
      begin: (claim) => {
        this.claims.add(claim);
        this.tell((observer) => observer.began?.(claim));
      },
      end: (claim) => {
        this.claims.delete(claim);
        this.tell((observer) => observer.ended?.(claim));
      },
      claims: this.claims,
      tickets: this.#tickets,
      guard: (claim) => this.at(this.nowMs + this.#guardDelayMs(), () => this.#guard(claim)),
      leads: (asked) => this.#leaders.set(party, asked),
      leaves: (close) => this.#leaving.set(party, close),
      failed: (error) => this.#failed(party, error),
      log: (text) => this.log(text),
    };
  }

  /** The duration of a request to the guarded resource. */
  #guardDelayMs(): number {
    const { plan, random } = this;
    return random.next() * (random.chance(0.2) ? guardLeases * plan.leaseMs : plan.delayMs);
  }

  /** The guarded resource refuses tokens smaller than the greatest that it has seen. */
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
