import type { FleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import { Accounts } from "./accounts.js";
import { Agent } from "./agent.js";
import { FleaseHazards } from "./hazards.js";
import { SharedWall, SimClock, assumptionsOf } from "../kit/clocks.js";
import type { ClockAssumptions } from "../kit/clocks.js";
import { fleaseCounters, type FleaseCounters } from "./stage/counters.js";
import { Counting } from "./counting.js";
import { EventCode, Task } from "../kit/events.js";
import { Network, Packet } from "./stage/network.js";
import type { Invariant } from "./stage/invariants.js";
import { Observers } from "./stage/observer.js";
import type { Stage, WorldMistakes } from "./stage/stage.js";
import type { Hold, Observer, FleaseReport, WorldView } from "./stage/observer.js";
import type { RunPlan, WorkloadPlan } from "./stage/plan.js";
import type { Watcher } from "./stage/watcher.js";
import { SimNode } from "./node.js";
import type { SimRandom } from "../kit/random.js";
import { Tenures } from "./tenures.js";
import { Claims } from "./waist/claims.js";
import { turnsMs } from "./stage/waist-plan.js";
import { SimWorld } from "../kit/world.js";
import { Writes } from "./writes.js";

export interface WorldOptions {
  readonly plan: RunPlan;
  readonly random: SimRandom;
  readonly mistakes?: WorldMistakes;
  /** Gets each thing that happens as a line of text. */
  readonly story?: (line: string) => void;
  /** Builds the checkers, which report violations. */
  readonly checkers: (view: WorldView, report: FleaseReport) => Observer[];
  /** A run stops at the first violation of an invariant for which this is true. */
  readonly asserted: (invariant: Invariant) => boolean;
  readonly watcher?: Watcher | undefined;
}

/**
 * Promises count as settled after this many turns without a request to the world. Eight would suffice today.
 */
const quietTurns = 24;

/** The limit of turns after one event: more are an endless loop. */
const turnsMax = 20_000;

/** One deterministic run: nodes, network, clocks and programs on virtual time, driven by one random generator. */
export class World extends SimWorld<Invariant, FleaseCounters> implements Stage {
  readonly plan: RunPlan;
  readonly settings: FleaseSettings;
  readonly workload: WorkloadPlan;
  readonly assumptions: ClockAssumptions;
  readonly mistakes: WorldMistakes;
  readonly sharedWall = new SharedWall();
  readonly nodes: readonly SimNode[];
  readonly members: readonly SimNode[];
  readonly network: Network;
  readonly tenures: Tenures;
  readonly claims: Claims;
  readonly writes: Writes;
  /** Some nodes have programs on the waist. */
  readonly hasWaist: boolean;
  readonly observers: Observers;
  /** Nothing goes wrong any more. */
  calm = false;
  readonly #hazards: FleaseHazards;
  readonly #holds: Hold[] = [];
  readonly #stirred: SimNode[] = [];
  /** By sender and receiver: the arrival of the last message. */
  readonly #lastArrivals: number[] = [];
  /** Increases with every request to the world. */
  #stirs = 0;
  #failure: { readonly error: unknown } | undefined;
  readonly #watcher: Watcher | undefined;

  constructor(options: WorldOptions) {
    const { plan, random, story, asserted, watcher } = options;
    super({ random, counters: fleaseCounters(), story, asserted });
    this.#watcher = watcher;
    this.plan = plan;
    this.settings = plan.settings;
    this.hasWaist = plan.waist.nodes.length > 0;
    this.workload = plan.workload;
    this.assumptions = assumptionsOf[plan.mode];
    this.mistakes = options.mistakes ?? {};
    const members = plan.settings.members.length;
    const size = members + plan.clients;
    this.nodes = Array.from({ length: size }, (_, index) => {
      const clock = new SimClock(this.sharedWall, random.between(1_000, 1_000_000), plan.wholeMs);
      return new SimNode(this, index, index < members, clock);
    });
    this.members = this.nodes.slice(0, members);
    this.network = new Network(
      size,
      plan.network,
      random,
      (event, delayMs) => this.#deliver(event, delayMs),
      watcher && ((packet) => watcher.lost(packet)),
    );
    this.tenures = new Tenures(this, size);
    this.claims = new Claims(this);
    this.writes = new Writes();
    const counting = new Counting(this.counters);
    this.observers = new Observers([
      this.writes,
      counting,
      new Accounts(),
      ...options.checkers(this, this.report),
      ...(watcher === undefined ? [] : [watcher]),
    ]);
    this.#hazards = new FleaseHazards(this);
    for (const { node, resource } of plan.agents) {
      const owner = this.nodes[node]!;
      if (!plan.waist.nodes.includes(node)) owner.agents.push(new Agent(this, owner, resource));
      else for (let each = 0; each < plan.waist.programsEach; each += 1) owner.wants.push(resource);
    }
    watcher?.begins(this);
  }

  /** Runs to the end, or to the first violation. */
  async run(): Promise<void> {
    const { plan } = this;
    this.#hazards.begin();
    for (const node of this.nodes) this.schedule(this.#hazards.firstStart(node), this.#startInMs(node));
    this.schedule(new Task(EventCode.chaos, () => this.#calmDown()), plan.stormMs);
    const endMs = plan.stormMs + (plan.calmMs === 0 ? 0 : plan.calmMs + turnsMs(plan));
    while (this.#runUntilStirred(endMs)) await this.#settle();
    if (this.violation === undefined && plan.calmMs > 0) this.#checkProgress();
  }

  /** Runs events until one has resolved something that promises wait for. False at the end of the run. */
  #runUntilStirred(endMs: number): boolean {
    for (;;) {
      const event = this.next(endMs);
      if (event === undefined) return false;
      if (event instanceof Packet) this.#hashPacket(event);
      event.run();
      this.#watcher?.happened(event);
      if (this.#stirred.length > 0 && !this.#goesOnReading()) return true;
    }
  }

  /** A host handles all messages of one turn; code that awaits promises continues after the last. */
  #goesOnReading(): boolean {
    return this.plan.network.readEveryMs > 0 && this.nextDueMs <= this.nowMs;
  }

  #deliver(packet: Packet, delayMs: number): void {
    const { readEveryMs, inOrder = false } = this.plan.network;
    let arrivesMs = this.nowMs + delayMs;
    if (inOrder) {
      const way = packet.from * this.nodes.length + packet.to;
      arrivesMs = Math.max(arrivesMs, this.#lastArrivals[way] ?? 0);
      this.#lastArrivals[way] = arrivesMs;
    }
    if (readEveryMs > 0) arrivesMs = Math.ceil(arrivesMs / readEveryMs) * readEveryMs;
    this.scheduleAt(packet, arrivesMs);
    this.#watcher?.departed(packet, arrivesMs);
  }

  /** A promise of this node may continue when the present event is over. */
  stir(node: SimNode): void {
    this.#stirs += 1;
    if (node.stirred) return;
    node.stirred = true;
    this.#stirred.push(node);
  }

  /** Time stands still until all promises have settled, so a seed decides what programs do. */
  async #settle(): Promise<void> {
    let stirs = this.#stirs;
    for (let quiet = 0, turns = 0; quiet < quietTurns; quiet += 1, turns += 1) {
      await undefined;
      if (turns > turnsMax) throw new Error(`seed ${this.plan.seed}: a program runs wild`);
      if (stirs === this.#stirs) continue;
      stirs = this.#stirs;
      quiet = 0;
    }
    if (this.#failure !== undefined && this.violation === undefined) throw this.#failure.error;
    for (const node of this.#stirred) node.stirred = false;
    this.#stirred.length = 0;
    this.look(undefined, undefined);
  }

  /**
   * Simulates async functions of programs or providers between two calls: a few turns in which others can
   * run.
   */
  async pass(turnsMax: number): Promise<void> {
    for (let left = this.random.below(turnsMax); left > 0; left -= 1) {
      this.#stirs += 1;
      await undefined;
    }
  }

  /** A program has failed in a way that is not allowed: the run ends. */
  fail(error: unknown): void {
    this.#failure ??= { error };
  }

  /** A client has exited cleanly. */
  left(node: SimNode): void {
    this.#hazards.comesBack(node);
  }

  /** Some clients start in the middle of the run. */
  #startInMs(node: SimNode): number {
    const soonMs = this.random.next();
    if (node.isMember || !Number.isFinite(this.plan.chaos.clientEveryMs)) return soonMs;
    return this.random.chance(0.5) ? soonMs : this.random.between(0, this.plan.stormMs / 2);
  }

  settingsOf(node: SimNode): FleaseSettings {
    const { settings } = this;
    if (this.mistakes.mixedCells !== true || node.index % 2 === 0) return settings;
    return { ...settings, cellSize: settings.members.length - 2 };
  }

  readonly arrive = (packet: Packet): void => {
    this.nodes[packet.to]!.arrive(packet);
  };

  /** The delay of a timer, as on a busy machine. */
  drawLateMs(): number {
    const { timersLateMs } = this.plan;
    return this.calm || timersLateMs === 0 ? 0 : this.random.exponential(timersLateMs);
  }

  /** The name under which a node's proposer works. */
  ownerFor(node: SimNode, owner: string): string {
    return this.mistakes.sharedIncarnation === true && !node.isMember ? "c.shared" : owner;
  }

  /** Shows the observers the holds of the resources that an event may have affected. */
  look(resource: string | undefined, actor: SimNode | undefined): void {
    if (resource !== undefined) this.#lookAt(resource, actor);
    else for (const each of this.plan.resources) this.#lookAt(each, actor);
  }

  #lookAt(resource: string, actor: SimNode | undefined): void {
    const holds = this.#holds;
    holds.length = 0;
    for (const node of this.nodes) {
      const instance = node.peer?.proposer.instanceOf(resource);
      if (instance === undefined || !instance.holding) continue;
      const now = node.look();
      holds.push({
        node,
        instance,
        now,
        valid: node.sleep.reliesOn(instance.holdExpiresWallMs, instance.holdExpiresMonoMs),
      });
    }
    for (const looked of this.observers.looked) looked(resource, holds, actor);
  }

  #calmDown(): void {
    this.story?.("from now on nothing goes wrong");
    this.calm = true;
    if (this.plan.calmMs > 0) this.#hazards.end();
  }

  /** L1: after the last fault each resource must find a holder in time. */
  #checkProgress(): void {
    for (const calmEnded of this.observers.calmEnded) calmEnded();
    const idle = this.tenures.idleSince(this.plan.stormMs, this.plan.resources);
    if (idle !== undefined) this.report("L1", `nobody acquires ${idle} though nothing goes wrong any more`);
    if (this.plan.views?.asBytes === true) this.#checkViews();
  }

  /** L1: a change that is the only one completes, and all nodes enter the view after it. */
  #checkViews(): void {
    const [first, ...others] = this.nodes.map(({ name, peer }) => ({ name, view: peer?.views.view }));
    const other = others.find(({ view }) => view?.stamp !== first!.view?.stamp);
    if (other !== undefined || first!.view?.before !== undefined)
      this.report(
        "L1",
        `${first!.name} is in view ${first!.view?.number}, and ${other?.name ?? "everybody"} in ${other?.view?.number ?? "it"}`,
      );
  }

  #hashPacket(packet: Packet): void {
    const { message, note } = packet;
    this.hash.number(packet.from * 64 + packet.to);
    if (note !== "") this.hash.text(note);
    if (message === undefined) return;
    this.hash.number(message.kind).number(message.number);
    this.hash.number(message.sequence).number(message.until);
  }
}
