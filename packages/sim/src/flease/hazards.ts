import { Chaos } from "../kit/chaos.js";
import { drawChange } from "./stage/views-plan.js";
import { EventCode, Task } from "../kit/events.js";
import type { MachineNode } from "./stage/node.js";
import type { Stage } from "./stage/stage.js";
import { obstacleTo } from "leasehold/inner/flease/views/obstacles.js";
import type { Standing } from "leasehold/inner/flease/views/obstacles.js";
import { votersOf } from "leasehold/inner/flease/views/view.js";
import type { Membership } from "leasehold/inner/flease/views/view.js";
import { greatest } from "leasehold/inner/common/lists.js";

/** How often a node checks whether its wall clock is again near its former reading. */
const startAgainMs = 50;

/** A wall clock this far ahead agrees with no other. */
const farMs = 3_600_000;

/** The faults of peers: crashes, pauses, partitions and clocks. */
export class FleaseHazards {
  readonly #world: Stage;
  /** The number of the last joint view. */
  #newestChange = 0;

  constructor(world: Stage) {
    this.#world = world;
  }

  begin(): void {
    const { chaos } = this.#world.plan;
    const { wall, rate } = this.#world.assumptions;
    const wildStart = this.#world.random.chance(0.5) && this.#world.plan.mode !== "g";
    for (const node of this.#world.nodes) {
      if (wildStart || wall) this.#shiftWall(node);
      if (Number.isFinite(chaos.slewEveryMs) && this.#world.random.chance(0.5)) this.#slew(node);
      if ((wildStart || rate) && Number.isFinite(chaos.rateEveryMs)) this.#changeRate(node);
    }
    const untilMs = this.#world.plan.stormMs;
    new Chaos(this.#world).begin([
      { everyMs: chaos.crashEveryMs, untilMs, happens: () => this.#crash(this.#anyone()) },
      { everyMs: chaos.blackoutEveryMs, untilMs, happens: () => this.#blackout() },
      { everyMs: chaos.pauseEveryMs, untilMs, happens: () => this.#pause() },
      { everyMs: chaos.suspendEveryMs, untilMs, happens: () => this.#suspend() },
      { everyMs: chaos.partitionEveryMs, untilMs, happens: () => this.#partition() },
      { everyMs: chaos.offsetEveryMs, untilMs, happens: () => this.#shiftWall(this.#anyone()) },
      { everyMs: chaos.rateEveryMs, untilMs, happens: () => this.#changeRate(this.#anyone()) },
      { everyMs: chaos.slewEveryMs, untilMs, happens: () => this.#slew(this.#anyone()) },
      { everyMs: chaos.stepTogetherEveryMs, untilMs, happens: () => this.#stepAnywhere() },
      {
        everyMs: this.#world.plan.views?.changeEveryMs ?? Infinity,
        untilMs,
        happens: () => this.#changeMembers(),
      },
      { everyMs: chaos.clientEveryMs, untilMs, happens: () => this.#clientLeaves() },
    ]);
  }

  /** Ends all faults, and repairs what is broken. */
  end(): void {
    const world = this.#world;
    const { wall, stepsTogether } = world.assumptions;
    world.network.heal(world.settings.rpcTimeoutMs / 40);
    for (const { clock } of world.nodes) clock.setRate(world.nowMs, 1);
    if (!wall || stepsTogether) {
      // The clocks agree on the latest time that any of them ever showed, so that every lease will be over.
      const ahead = world.nodes.map((node) => node.greatestWall - node.clock.wallAt(world.nowMs));
      const offsets = world.nodes.map(
        (node, index) => ahead[index]! + node.clock.offsetMs + world.sharedWall.offsetMs,
      );
      world.sharedWall.offsetMs = greatest(offsets, world.sharedWall.offsetMs);
    }
    for (const node of world.nodes) {
      if (node.sleep.isOn) node.crash(); // Switched off and on again.
      node.clock.offsetMs = world.random.pick([-1, 1]) * this.#offsetBoundMs();
      if (node.peer === undefined) this.#start(node);
    }
    this.#clocksChanged();
  }

  #anyone(): MachineNode {
    return this.#world.random.pick(this.#world.nodes);
  }

  // Nodes

  /** The first start of a node. A client may start late. */
  firstStart(node: MachineNode): Task {
    return new Task(EventCode.start, () => {
      if (node.peer === undefined) node.start();
    });
  }

  /** A client leaves, either cleanly or by a crash. */
  #clientLeaves(): void {
    const { random, nodes } = this.#world;
    const client = random.pick(nodes.filter(({ isMember }) => !isMember));
    if (client.peer === undefined || client.paused) return;
    if (client.waist === undefined || random.chance(0.3)) this.#crash(client);
    else client.waist.leave();
  }

  /** A client that has left returns later, under another identity. */
  comesBack(node: MachineNode): void {
    const { random, plan, counters } = this.#world;
    this.#later(random.next() * plan.chaos.downMaxMs, () => {
      counters.clientArrivals += 1;
      this.#start(node);
    });
  }

  #crash(node: MachineNode): void {
    const { random, plan } = this.#world;
    if (node.peer === undefined || node.sleep.isOn) return;
    node.crash();
    const { lossRate = 0 } = plan.views ?? {};
    if (lossRate > 0 && node.isMember && random.chance(lossRate)) node.loseView();
    this.#later(random.chance(0.4) ? 0 : random.next() * plan.chaos.downMaxMs, () => this.#start(node));
  }

  #blackout(): void {
    for (const node of this.#world.nodes) this.#crash(node);
  }

  /** A start must not find the wall clock more than ε below what it showed in an earlier life (A-wall). */
  #start(node: MachineNode): void {
    const world = this.#world;
    if (node.peer !== undefined) return;
    const tooEarly = node.clock.wallAt(world.nowMs) < node.greatestWall - world.settings.maxClockSkewMs;
    const waits = world.assumptions.wall && node.isMember && world.mistakes.earlyStart !== true;
    if (waits && tooEarly) this.#later(startAgainMs, () => this.#start(node));
    else node.start();
  }

  #pause(): void {
    const { random, plan } = this.#world;
    this.#anyone().pause(random.next() * plan.chaos.pauseMaxMs);
  }

  /**
   * A machine sleeps: nothing happens there and its steady clock stands still. It sets its wall clock when it
   * wakes.
   */
  #suspend(): void {
    const world = this.#world;
    const { random, plan } = world;
    // Chooses a holder, which has the most to lose.
    const holders = world.nodes.filter((each) => !each.paused && holdsAny(each, plan.resources));
    const node = holders.length > 0 && random.chance(0.7) ? random.pick(holders) : this.#anyone();
    if (node.peer === undefined || node.paused) return;
    const forMs = random.between(0.1, 1) * plan.chaos.suspendMaxMs;
    if (world.assumptions.stepsTogether && random.chance(0.5)) {
      const afterMs = random.next() * forMs;
      // Back to about the time when it was suspended.
      const backMs = afterMs + random.between(-0.2, 1) * world.settings.ttlMaxMs;
      this.#later(afterMs, () => this.#stepTogether(-Math.max(world.settings.maxClockSkewMs, backMs)));
    }
    node.sleep.begin(forMs);
    this.#later(forMs, () => {
      if (!node.sleep.isOn) return;
      node.sleep.isOn = false;
      node.clock.setRate(world.nowMs, 1);
      if (!world.assumptions.rate && !world.assumptions.wall) node.clock.offsetMs -= forMs; // A machine that was frozen with both its clocks.
      else if (!world.assumptions.wall) this.#wakeWithWrongWall(node, forMs);
      this.#clocksChanged();
    });
    this.#clocksChanged();
  }

  /** Anywhere except where the steady clock takes it: that would show nothing (section 1). */
  #wakeWithWrongWall(node: MachineNode, sleptMs: number): void {
    const { random, plan, settings } = this.#world;
    const rightMs = node.clock.offsetMs;
    for (let tries = 0; tries < 20; tries += 1) {
      // Right, wrong by a step, or as if it had slept for less than a lease.
      const noticedMs = random.next() * Math.min(sleptMs, settings.ttlMaxMs);
      const wrongMs = random.pick([
        0,
        random.between(-1, 1) * plan.chaos.offsetStepMaxMs,
        noticedMs - sleptMs,
      ]);
      node.clock.offsetMs = rightMs + wrongMs;
      if (!node.sleep.clocksSeemToAgree()) return;
    }
    node.clock.offsetMs = rightMs + farMs;
  }

  #changeMembers(): void {
    const { nodes, random, settings } = this.#world;
    const node = random.pick(nodes);
    const { views } = node.peer ?? {};
    if (views === undefined || !node.isMember || node.paused || node.sleep.isOn) return;
    const next = drawChange(views.view, settings, random);
    const coming = nodes.find(
      ({ name }) => next.members.includes(name) && !votersOf(views.view).includes(name),
    );
    if (!this.#mayBegin(node, next)) return;
    if (coming?.peer?.views.invite(views.view.number + 1) === false) return;
    this.#later(random.next() * settings.rpcTimeoutMs, () => {
      if (!this.#mayBegin(node, next)) return;
      this.#newestChange = node.peer!.views.view.number + 1;
      node.changeMembers(next);
    });
  }

  /** Starts from the view of the member that asks all others, if no change has begun meanwhile. */
  #mayBegin({ peer, paused, sleep }: MachineNode, next: Membership): boolean {
    if (peer === undefined || paused || sleep.isOn || peer.views.whyNoChange(next) !== undefined)
      return false;
    // The operator prevents overlapping changes: two at once may both get stuck for ever.
    const { rivals = false } = this.#world.plan.views ?? {};
    if (!rivals && peer.views.view.number < this.#newestChange) return false;
    const standings = new Map(
      this.#world.nodes
        .filter((each) => each.peer?.acceptor !== undefined && !each.paused && !each.sleep.isOn)
        .map((each) => [each.name, standingOf(each, peer.views.view)]),
    );
    return obstacleTo(peer.views.view, next, standings) === undefined;
  }

  // Network

  #partition(): void {
    const { random, network, nodes, plan } = this.#world;
    const inside = nodes.map(() => random.chance(0.4));
    const outward = random.chance(0.7);
    const inward = !outward || random.chance(0.6);
    const cuts: [number, number][] = [];
    for (const from of nodes) {
      for (const to of nodes) {
        const leaves = inside[from.index]! && !inside[to.index]!;
        const enters = !inside[from.index]! && inside[to.index]!;
        if ((leaves && outward) || (enters && inward)) cuts.push([from.index, to.index]);
      }
    }
    for (const [from, to] of cuts) network.cut(from, to);
    this.#later(random.next() * plan.chaos.partitionMaxMs, () => {
      for (const [from, to] of cuts) network.mend(from, to);
    });
  }

  // Clocks

  /** Half of the largest difference between two clocks. The granularity of readings is part of ε. */
  #offsetBoundMs(): number {
    const { settings, plan } = this.#world;
    return (settings.maxClockSkewMs - (plan.wholeMs ? 2 : 0)) / 2;
  }

  #shiftWall(node: MachineNode): void {
    const { random, settings, assumptions, plan } = this.#world;
    const bound = this.#offsetBoundMs();
    if (assumptions.wall && node.clock.isSlewing) return;
    if (assumptions.wall || random.chance(0.2)) {
      node.clock.offsetMs = random.chance(0.7) ? random.pick([-bound, bound]) : random.between(-bound, bound);
    } else {
      const step = random.magnitude(settings.maxClockSkewMs, plan.chaos.offsetStepMaxMs);
      node.clock.offsetMs += random.pick([-1, 1]) * step;
    }
    this.#clocksChanged();
  }

  #changeRate(node: MachineNode): void {
    const world = this.#world;
    const { random, settings, assumptions, plan } = world;
    const error = settings.clockRateError;
    if (node.sleep.isOn || node.clock.isSlewing) return;
    if (assumptions.rate) {
      node.clock.setRate(world.nowMs, 1 + random.pick([-error, error, random.between(-error, error)]));
    } else {
      // At rate 0 it is suspended: the steady clock stands still while the node goes on.
      const suspended = random.chance(0.5);
      node.clock.setRate(world.nowMs, suspended ? 0 : random.magnitude(0.1, 10));
      // With both clocks broken, both jump at once, as when a virtual machine is restored from a snapshot.
      if (suspended && !assumptions.wall)
        node.clock.offsetMs -= random.magnitude(settings.maxClockSkewMs, plan.chaos.offsetStepMaxMs);
      this.#later(random.next() * plan.chaos.rateMaxMs, () => {
        if (!node.sleep.isOn) node.clock.setRate(world.nowMs, 1);
        this.#clocksChanged();
      });
    }
    this.#clocksChanged();
  }

  /**
   * Both clocks run together at the limit of A-rate, until the wall clock reaches its target or the limit of
   * A-wall.
   */
  #slew(node: MachineNode): void {
    const world = this.#world;
    const { random, settings, assumptions, plan } = world;
    const { clock } = node;
    if (clock.isSlewing) return;
    const direction = random.pick([-1, 1]);
    const room = this.#offsetBoundMs() - direction * clock.offsetMs;
    const forMs = random.next() * plan.chaos.slewMaxMs;
    const mayMs = assumptions.wall ? Math.max(0, room) / settings.clockRateError : Infinity;
    clock.slew(world.nowMs, 1 + direction * settings.clockRateError);
    world.counters.slews += 1;
    world.story?.(`the clocks of ${node.name} run at ${clock.rate}`);
    this.#later(Math.min(forMs, mayMs), () => {
      if (!clock.isSlewing) return;
      clock.setRate(world.nowMs, 1);
      this.#clocksChanged();
    });
    this.#clocksChanged();
  }

  #stepAnywhere(): void {
    const { random, settings } = this.#world;
    const step = random.magnitude(settings.maxClockSkewMs, 6 * settings.ttlMaxMs);
    this.#stepTogether(random.pick([-1, 1]) * step);
  }

  #stepTogether(byMs: number): void {
    const { sharedWall } = this.#world;
    if (this.#world.calm) return;
    sharedWall.stepBy(byMs);
    this.#world.story?.(`all wall clocks step together, now ${sharedWall.offsetMs}`);
    this.#clocksChanged();
  }

  #clocksChanged(): void {
    for (const node of this.#world.nodes) node.rearm();
    this.#world.look(undefined, undefined);
  }

  #later(delayMs: number, act: () => void): void {
    this.#world.schedule(new Task(EventCode.start, act), delayMs);
  }
}

function standingOf(node: MachineNode, { members }: Membership): Standing {
  const { acceptor, views } = node.peer!;
  const votes = acceptor!.ready && (views.mayVote || !members.includes(node.name));
  const waitMs = acceptor!.recoveryWaitLeftMs(node.look());
  return { stamp: views.view.stamp, votes, waitMs, knowsComing: true };
}

function holdsAny({ peer }: MachineNode, resources: readonly string[]): boolean {
  return resources.some((resource) => peer?.proposer.instanceOf(resource)?.holding === true);
}
