import { ownerName } from "leasehold/inner/flease/protocol/ballot.js";
import { emptyReading } from "leasehold/inner/flease/protocol/clock.js";
import type { Reading } from "leasehold/inner/flease/protocol/clock.js";
import { Kind, Message, copyMessage } from "leasehold/inner/flease/protocol/message.js";
import { NodeViews } from "./node-views.js";
import type { Membership } from "leasehold/inner/flease/views/view.js";
import type { FleasePeer, PeerOutcomes } from "leasehold/inner/flease/peer.js";
import type { Medium } from "leasehold/inner/flease/protocol/proposer-ports.js";
import { FleaseRunner } from "leasehold/inner/flease/runner.js";
import type { Clock, Timers } from "leasehold/inner/common/ports.js";
import type { Lapse, AttemptFailure } from "leasehold/inner/flease/protocol/proposer-ports.js";
import { FleaseGrant } from "leasehold/inner/flease/grant.js";
import { Instance, Phase } from "leasehold/inner/flease/protocol/instance.js";
import type { InstanceMaker } from "leasehold/inner/flease/protocol/instance.js";
import type { MachineNode, ProgramNode, InstanceProgram } from "./stage/node.js";
import type { SimClock } from "../kit/clocks.js";
import { Echoes } from "./echoes.js";
import { EventCode, Task } from "../kit/events.js";
import { SteadyTimers } from "../kit/steady-timers.js";
import { Packet } from "./stage/network.js";
import { emptyEntry } from "leasehold/inner/flease/protocol/entries/entry.js";
import type { AcceptorStep } from "./stage/observer.js";
import { Sleep } from "./sleep.js";
import { describe } from "../kit/story.js";
import { Job } from "./waist/job.js";
import { Program } from "./waist/program.js";
import { Sharer } from "./waist/sharer.js";
import { Side } from "./waist/side.js";
import { Waist } from "./waist/waist.js";
import type { Stage } from "./stage/stage.js";

/** The share of a node's periodic checks at which it sends a heartbeat. */
const heartbeatRate = 0.2;

/**
 * One node of the world: the product's runner on the machine's clocks, timers and network, with programs on
 * top, and what checkers see of it. It outlives its incarnations: a crash discards the runner, and a start
 * makes a new one with empty memory.
 */
export class SimNode implements Medium, PeerOutcomes, MachineNode, ProgramNode {
  readonly index: number;
  readonly name: string;
  readonly isMember: boolean;
  readonly clock: SimClock;
  readonly agents: InstanceProgram[] = [];
  /** The resources that programs of this node want, one entry per program. Each program uses the waist. */
  readonly wants: string[] = [];
  /** Undefined while the node is down. */
  runner: FleaseRunner | undefined;
  peer: FleasePeer | undefined;
  owner = "";
  incarnation = 0;
  /** Admin RPCs; only in worlds that have them. */
  side: Side | undefined;
  /** The lease layer of this node's programs, if they use one. */
  waist: Waist | undefined;
  /** A promise of this node may continue when the present event is over. */
  stirred = false;
  /** The end of a pause: the node handles nothing, and its clocks run on. */
  pausedUntilMs = 0;
  /** The greatest reading its wall clock ever gave (see A-wall on starts). */
  greatestWall = -Infinity;
  readonly sleep: Sleep;
  readonly #world: Stage;
  readonly #byInstance: (InstanceProgram | undefined)[] = [];
  #timers: SteadyTimers | undefined;
  readonly #looked = emptyReading();
  readonly #clockPort: Clock;
  readonly #echoes = new Echoes();
  #renames = 0;
  /** The node has a new owner name, which has not been reported yet. */
  #renamed = false;
  #wasReady = false;
  readonly #views: NodeViews;
  readonly #step: AcceptorStep;

  constructor(world: Stage, index: number, isMember: boolean, clock: SimClock) {
    this.#world = world;
    this.index = index;
    this.isMember = isMember;
    this.name = isMember ? `m${index}` : `c${index}`;
    this.clock = clock;
    this.sleep = new Sleep(world, this);
    this.#views = new NodeViews(world, this);
    this.#clockPort = {
      monotonicMs: () => {
        this.sleep.look();
        return clock.monoAt(world.nowMs);
      },
      wallMs: () => this.#readWall(),
    };
    this.#step = {
      node: this,
      request: new Message(),
      now: this.#looked,
      before: { ...emptyEntry(), present: false },
      after: undefined,
      reply: undefined,
    };
  }

  get paused(): boolean {
    return this.pausedUntilMs > this.#world.nowMs;
  }

  /** The clock as an observer sees it, without disturbing it. One reused record. */
  look(): Reading {
    const at = this.#world.nowMs;
    return this.peer!.clock.peek(this.clock.monoAt(at), this.clock.wallAt(at), this.#looked);
  }

  // Life

  start(): void {
    const world = this.#world;
    this.incarnation += 1;
    this.pausedUntilMs = 0;
    this.sleep.isOn = false;
    this.#byInstance.length = 0;
    this.#echoes.forget();
    this.#renamed = this.#wasReady = false;
    this.owner = world.ownerFor(this, ownerName(this.name, `${this.incarnation}`));
    this.#timers = new SteadyTimers(world, {
      clock: this.clock,
      turn: (wake, body) => {
        if (this.deferred(wake)) return;
        body();
        world.look(undefined, this);
        if (this.side !== undefined) world.stir(this);
      },
      drawLateMs: () => world.drawLateMs(),
    });
    this.runner = new FleaseRunner({
      settings: world.settingsOf(this),
      acceptor: this.isMember,
      world: { clock: this.#clockPort, timers: this.#timers, random: world.random },
      medium: this,
      views: this.#views.port(),
      owner: () => this.owner,
      clockFault: (reason) => this.#clockFault(reason),
      maintained: (now) => this.#maintained(now),
    });
    this.peer = this.runner.peer;
    world.story?.(`${this.name} starts as ${this.owner}, wall ${this.runner.reading.wall}`);
    this.#views.started();
    for (const started of world.observers.started) started(this);
    for (const agent of this.agents) agent.begin();
    if (world.hasWaist) this.#startWaist(world, this.runner, this.#timers);
    this.peer.attach(this);
    this.runner.maintain();
  }

  #startWaist(world: Stage, runner: FleaseRunner, steady: SteadyTimers): void {
    const timers: Timers = {
      after: (delayMs, run) => {
        world.stir(this);
        return steady.after(delayMs, run);
      },
    };
    this.side = new Side(world, this, timers);
    if (this.wants.length === 0) return;
    this.waist = new Waist(world, this, runner, timers);
    for (const resource of this.wants) new Program(world, this.waist, resource).begin();
    const { waist, resources } = world.plan;
    for (let each = 0; each < waist.jobsEach; each += 1) new Job(world, this.waist, resources).begin();
    for (let each = 0; each < waist.sharersEach; each += 1) new Sharer(world, this.waist).begin();
  }

  crash(): void {
    if (this.peer === undefined) return;
    this.#world.story?.(`${this.name} crashes`);
    this.#world.counters.crashes += 1;
    this.#die();
  }

  /** The process has exited cleanly. */
  leave(): void {
    this.#world.story?.(`${this.name} leaves`);
    this.#world.counters.clientDepartures += 1;
    this.#die();
    this.#world.left(this);
  }

  #die(): void {
    for (const crashing of this.#world.observers.crashing) crashing(this);
    this.#world.tenures.crash(this);
    this.#world.claims.crash(this);
    this.runner?.end();
    this.runner = this.peer = undefined;
    if (this.isMember) for (const other of this.#world.nodes) other.peer?.skew.forget(this.index);
    for (const agent of this.agents) agent.end();
    this.#timers?.end();
    this.side = this.waist = this.#timers = undefined;
    this.#connectionsLost();
  }

  /** Each of the others notices in an event of its own, when it is not stopped. */
  #connectionsLost(): void {
    if (!this.#world.hasWaist) return;
    for (const other of this.#world.nodes) {
      const notice = new Task(EventCode.noticed, () => {
        if (!other.deferred(notice)) other.side?.disconnected(this);
      });
      this.#world.schedule(notice, 0);
    }
  }

  pause(forMs: number): void {
    if (this.peer === undefined || this.paused) return;
    const world = this.#world;
    world.story?.(`${this.name} is stopped for ${Math.round(forMs)} ms`);
    world.counters.pauses += 1;
    this.pausedUntilMs = world.nowMs + forMs;
  }

  loseView(): void {
    this.#views.lose();
  }

  changeMembers(next: Membership): void {
    this.step(undefined, (now) => {
      if (this.peer!.changeMembers(next, now)) this.#views.look();
    });
  }

  /**
   * One event of this node: reads the clock once, runs the body, and processes what follows. `resource` is
   * the resource that the event may have affected; undefined means any.
   */
  step(resource: string | undefined, body: (now: Reading) => void): void {
    const runner = this.runner!;
    body(runner.now());
    runner.poke();
    this.#world.look(resource, this);
    if (this.side !== undefined) this.#world.stir(this);
  }

  /** Postpones an event while the node is stopped. Returns true if it did. */
  deferred(event: Task | Packet): boolean {
    if (!this.paused) return false;
    this.#world.scheduleAt(event, this.pausedUntilMs);
    return true;
  }

  arrive(packet: Packet): void {
    const { runner } = this;
    if (runner === undefined || (packet.toIncarnation !== 0 && packet.toIncarnation !== this.incarnation))
      return;
    if (this.deferred(packet)) return;
    runner.arrived();
    const { message } = packet;
    if (!this.#believes(packet, runner)) return;
    if (packet.note !== "") this.#hear(packet);
    if (packet.view !== undefined && runner.peer.hearView(packet.view, runner.reading)) this.#views.look();
    if (message !== undefined) {
      if (message.kind <= Kind.query) this.#handleRequest(packet, message, runner);
      else if (message.kind <= Kind.state) this.#handleReply(packet, message, runner);
      else runner.receive(packet.from, message);
    }
    runner.poke();
    if (message === undefined) return;
    this.#world.look(packet.resource, this);
    if (this.waist !== undefined && message.kind > Kind.query) this.#world.stir(this);
  }

  #hear(packet: Packet): void {
    const from = this.#world.nodes[packet.from]!;
    if (from.incarnation !== packet.fromIncarnation || from.peer === undefined) return;
    this.side?.hear(from, packet.note);
    this.#world.stir(this);
  }

  /** Sends an admin RPC to another node. */
  whisper(to: number, toIncarnation: number, note: string): void {
    this.#dispatch(to, toIncarnation, "", undefined, note);
  }

  /** The rates of its clocks have changed. */
  rearm(): void {
    this.#timers?.rearm();
  }

  #maintained(now: Reading): void {
    const world = this.#world;
    if (this.#renamed) {
      this.#renamed = false;
      this.#connectionsLost();
      for (const renamed of world.observers.renamed) renamed(this);
    }
    this.#views.look();
    const ready = this.peer!.acceptor?.ready === true;
    if (ready && !this.#wasReady) this.#readied();
    this.#wasReady = ready;
    this.side?.calls.maintain(now);
    for (const clockRead of world.observers.clockRead) clockRead(this);
    if ((world.plan.skewWatch || world.plan.views !== undefined) && world.random.chance(heartbeatRate))
      this.#beat();
  }

  /**
   * Heartbeats on idle links carry the clock's reading; otherwise a contradiction would never be withdrawn.
   */
  #beat(): void {
    for (const { index } of this.#world.nodes)
      if (index !== this.index) this.#dispatch(index, 0, "", undefined);
  }

  #readied(): void {
    this.#world.counters.rejoins += 1;
    this.#world.story?.(`${this.name} is ready`);
    for (const readied of this.#world.observers.readied) readied(this);
  }

  #clockFault(reason: string): void {
    this.#world.counters.clockAlarms += 1;
    this.#world.story?.(`${this.name}: clock fault, ${reason}`);
    this.#renames += 1;
    this.#renamed = true;
    this.owner = ownerName(this.name, `${this.incarnation}x${this.#renames}`);
    this.side?.close();
  }

  #handleRequest(packet: Packet, request: Message, runner: FleaseRunner): void {
    const { acceptor } = runner.peer;
    if (acceptor === undefined) return;
    const step = this.#step;
    const before = acceptor.entry(request.resource);
    step.before.present = before !== undefined;
    if (before !== undefined) Object.assign(step.before, before);
    const reply = runner.receive(packet.from, request);
    step.request = request;
    step.now = runner.reading;
    step.reply = reply;
    step.after = acceptor.entry(request.resource);
    for (const handled of this.#world.observers.handled) handled(step);
    if (reply === undefined) return;
    this.#world.story?.(`  ${this.name} answers ${describe(reply)}`);
    this.#post(packet.from, packet.fromIncarnation, packet.resource, reply);
  }

  #handleReply(packet: Packet, reply: Message, runner: FleaseRunner): void {
    const instance = runner.peer.proposer.instanceOf(packet.resource);
    const deciding =
      instance !== undefined &&
      reply.kind === Kind.ack &&
      instance.awaits(reply.number, reply.sequence) &&
      (instance.operation.phase === Phase.writing || instance.operation.phase === Phase.fast);
    runner.receive(packet.from, reply);
    // A majority has acknowledged the write, but by then its lease was over.
    if (deciding && !instance.awaits(reply.number, reply.sequence)) this.#world.counters.lateDecisions += 1;
  }

  /** Clock bounds that are impossible, given ours, mean that one of the two clocks is at fault (3.10). */
  #believes(packet: Packet, runner: FleaseRunner): boolean {
    if (!this.#world.plan.skewWatch || packet.from === this.index) return true;
    this.#echoes.hear(packet);
    const possible = runner.believes(packet.from, packet.lo, packet.hi, packet.echoLo);
    if (!possible) this.#world.counters.impossibleClocks += 1;
    return possible;
  }

  #post(to: number, toIncarnation: number, resource: string, message: Message): void {
    for (const sent of this.#world.observers.sent) sent(this, to, message);
    this.#dispatch(to, toIncarnation, resource, copyMessage(message));
  }

  #dispatch(
    to: number,
    toIncarnation: number,
    resource: string,
    message: Message | undefined,
    note = "",
  ): void {
    const address = { from: this.index, to, fromIncarnation: this.incarnation, toIncarnation, resource };
    const packet = new Packet(address, message, this.#world.arrive);
    packet.note = note;
    this.#views.tell(packet);
    const { lo, hi } = this.runner!.reading;
    packet.lo = lo;
    packet.hi = hi;
    packet.echoLo = this.#echoes.of(this.#world.nodes[to]!);
    this.#world.network.send(packet);
  }

  #readWall(): number {
    const wall = this.clock.wallAt(this.#world.nowMs);
    this.greatestWall = Math.max(this.greatestWall, wall);
    return wall;
  }

  assign(instance: Instance, agent: InstanceProgram): void {
    this.#byInstance[instance.index] = agent;
  }

  send(to: number, message: Message): void {
    const { story } = this.#world;
    if (story !== undefined && to === 0) story(`  ${this.name} sends ${describe(message)}`);
    this.#post(to, 0, message.resource, message);
  }

  reaches(to: number): boolean {
    return this.#world.nodes[to]?.peer !== undefined;
  }

  notify(to: number, message: Message): boolean {
    if (!this.reaches(to)) return false;
    this.#post(to, 0, message.resource, message);
    return true;
  }

  hinted(resource: string): boolean {
    if (this.waist !== undefined) return this.waist.provider.hinted(resource);
    return this.agents.find((agent) => agent.resource === resource)?.hinted() ?? false;
  }

  readonly instance: InstanceMaker = (index, resource, cell, page) =>
    this.waist?.provider.instance(index, resource, cell, page) ?? new Instance(index, resource, cell, page);

  acquired(instance: Instance): void {
    const { fast } = this.#world.tenures.begin(this, instance);
    this.waist?.provider.acquired(FleaseGrant.of(instance));
    this.waist?.granted(instance.resource);
    this.#byInstance[instance.index]?.acquired(instance, fast);
  }

  refused(instance: Instance, holder: string, retryInMs: number): void {
    this.waist?.provider.refused(FleaseGrant.of(instance), holder, retryInMs);
    this.#byInstance[instance.index]?.refused(retryInMs);
  }

  failed(instance: Instance, why: AttemptFailure, fullBy: string): void {
    this.waist?.provider.failed(FleaseGrant.of(instance), why, fullBy);
    this.#byInstance[instance.index]?.failed(why);
  }

  renewed(instance: Instance, longer: boolean): void {
    const { counters } = this.#world;
    if (!longer) counters.failedRenewals += 1;
    else if (instance.holdSequence > 0) counters.oneTripRenewals += 1;
    else counters.twoPhaseRenewals += 1;
    this.waist?.provider.renewed(FleaseGrant.of(instance), longer);
    this.#byInstance[instance.index]?.renewed(longer);
  }

  lapsed(instance: Instance, why: Lapse): void {
    this.#world.counters.lapses += 1;
    if (this.waist === undefined) {
      this.#byInstance[instance.index]?.lapsed();
      return;
    }
    this.#world.tenures.end(this, instance.resource, "lapsed");
    this.waist.provider.lapsed(FleaseGrant.of(instance), why);
  }
}
