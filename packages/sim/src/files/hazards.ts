import { Chaos } from "../kit/chaos.js";
import type { NodesChange, NodesReport } from "@leasehold/files/inner/types.js";
import type { FilesWorld, Machine } from "./world.js";

/** The longest time that a machine is down, stopped, cut off or full, ms. */
const troubleMsMax = 2_500;

/**
 * How long machines miss changes before a disk is lost, at most, and how long until they and the disk are
 * back, ms.
 */
const behindMsMax = 800;
const rejoinMsMax = 40;

/** How often to check whether the new disk votes, ms. */
const pollMs = 2;

/** The faults of file nodes. */
export class FilesHazards {
  readonly #world: FilesWorld;
  #wiped: Machine | undefined;
  #alone: Machine | undefined;

  constructor(world: FilesWorld) {
    this.#world = world;
  }

  begin(): void {
    const { plan, random } = this.#world;
    const world = this.#world;
    const untilMs = plan.stableFromMs;
    new Chaos({
      random,
      get nowMs() {
        return world.nowMs;
      },
      at: (timeMs, body) => world.after(timeMs - world.nowMs, body),
    }).begin([
      { everyMs: plan.crashEveryMs, untilMs, happens: () => this.#crash() },
      { everyMs: plan.pauseEveryMs, untilMs, happens: () => this.#pause() },
      { everyMs: plan.partitionEveryMs, untilMs, happens: () => this.#part() },
      { everyMs: plan.isolateEveryMs, untilMs, happens: () => this.#isolate() },
      { everyMs: plan.leaseLossEveryMs, untilMs, happens: () => this.#loseLeases() },
      { everyMs: plan.rotEveryMs, untilMs, happens: () => this.#rot() },
      { everyMs: plan.fullEveryMs, untilMs, happens: () => this.#fill() },
      { everyMs: plan.wipeEveryMs, untilMs, happens: () => this.#wipe() },
      { everyMs: plan.wipeBehindEveryMs, untilMs, happens: () => this.#wipeBehind() },
      { everyMs: plan.nodesEveryMs, untilMs, happens: () => void this.#changeNodes() },
    ]);
    world.after(untilMs, () => this.#heal());
  }

  #some(): Machine {
    const { machines, random } = this.#world;
    const primaries = machines.filter(({ isUp, files }) => isUp && files.status().primaries.length > 0);
    return primaries.length > 0 && random.chance(0.5) ? random.pick(primaries) : random.pick(machines);
  }

  #crash(): void {
    const { machines, random, counters } = this.#world;
    for (const machine of random.chance(0.15) ? machines : [this.#some()]) {
      if (!machine.isUp) continue;
      counters.crashes += 1;
      this.#world.crash(machine, false);
      this.#restartSoon(machine);
    }
  }

  #restartSoon(machine: Machine): void {
    const { random } = this.#world;
    this.#world.after(random.next() * troubleMsMax, () => {
      if (!machine.isUp) this.#world.start(machine);
    });
  }

  #pause(): void {
    const machine = this.#some();
    if (!machine.isUp || machine.isPaused) return;
    this.#stop(machine, this.#world.random.next() * troubleMsMax);
  }

  #stop(machine: Machine, forMs: number): void {
    this.#world.counters.pauses += 1;
    this.#world.pause(machine);
    const { life } = machine;
    this.#world.after(forMs, () => {
      if (machine.life === life) this.#world.resume(machine);
    });
  }

  #part(): void {
    const { machines, random, counters } = this.#world;
    counters.partitions += 1;
    const alone = random.chance(0.5) ? this.#some() : undefined;
    const isWhole = random.chance(0.3);
    for (const machine of machines)
      machine.side = isWhole ? 0 : alone === undefined ? random.below(2) : Number(machine === alone);
    this.#world.log(`the network is parted: ${machines.map(({ id, side }) => `${id}:${side}`).join(" ")}`);
  }

  /** Often cuts the node off from its leases too, because networks do not choose. */
  #isolate(): void {
    const { machines, random, counters } = this.#world;
    const alone = machines.filter((machine) => machine !== this.#alone);
    const machine = random.chance(0.5) ? random.pick(alone) : this.#some();
    const isCutOff = random.chance(0.5);
    counters.isolations += 1;
    this.#alone = machine;
    for (const other of machines) {
      other.side = Number(other === machine);
      this.#world.cutOff(other, other === machine && isCutOff);
    }
    this.#world.log(`${machine.id} is alone${isCutOff ? ", and without the ground of its leases" : ""}`);
  }

  #loseLeases(): void {
    const { machines, random, counters } = this.#world;
    counters.leaseLosses += 1;
    const victim = this.#some();
    for (const machine of machines) this.#world.cutOff(machine, machine === victim && random.chance(0.8));
    this.#world.log(`${victim.id} does not reach the ground of its leases`);
  }

  /**
   * Corrupts a block that another machine has durably in the same version, because only one such fault at a
   * time can be repaired.
   */
  #rot(): void {
    const { machines, random, counters } = this.#world;
    if (machines.some(({ store }) => store.rottenBlocks > 0)) return;
    const machine = random.pick(machines);
    const saved = new Set(
      machines
        .filter((other) => other !== machine)
        .flatMap(({ store }) => store.healthyBlocks(true).map(nameOf)),
    );
    const blocks = machine.store.healthyBlocks().filter((block) => saved.has(nameOf(block)));
    if (blocks.length === 0) return;
    const { path, index, tag } = random.pick(blocks);
    counters.rotten += 1;
    machine.store.rot(path, index);
    this.#world.log(`block ${index} of ${path} (${tag}) rots at ${machine.id}`);
  }

  #fill(): void {
    const { random, counters, machines } = this.#world;
    for (const machine of random.chance(0.4) ? machines : [this.#some()]) {
      counters.full += 1;
      machine.isFull = true;
      this.#world.log(`${machine.id} is full`);
      this.#world.after(random.next() * troubleMsMax, () => (machine.isFull = false));
    }
  }

  /** Wipes one disk at a time: the next one only after the previous one has been rebuilt. */
  #wipe(): void {
    if (!this.#mayWipe()) return;
    const machine = this.#world.random.pick(this.#world.machines);
    if (!machine.isUp) return;
    this.#wipeDisk(machine);
    this.#restartSoon(machine);
  }

  #mayWipe(): boolean {
    const isBusy = this.#world.machines.some(
      ({ isUp, files, named }) => isUp && (named ?? files).status().state !== "serving",
    );
    const before = this.#wiped;
    return !isBusy && (before === undefined || (before.isUp && before.files.status().counters.scrubbed > 0));
  }

  #wipeDisk(machine: Machine): void {
    this.#world.counters.wiped += 1;
    this.#wiped = machine;
    this.#world.crash(machine, true);
  }

  /**
   * Wipes a disk while a minority of the machines is stopped and misses changes that the others have. The
   * others stop as soon as the new disk votes: together with the machines that missed the changes it would
   * form a majority.
   */
  #wipeBehind(): void {
    const world = this.#world;
    const { random, machines, plan } = world;
    if (!this.#mayWipe() || machines.some(({ isUp, isPaused }) => !isUp || isPaused)) return;
    const victim = random.pick(machines);
    const others = machines.filter((machine) => machine !== victim);
    if (random.chance(0.5)) others.reverse();
    const behindMs = random.next() * behindMsMax;
    for (const machine of others.slice(others.length / 2))
      this.#stop(machine, behindMs + random.next() * rejoinMsMax);
    world.after(behindMs, () => {
      if (!victim.isUp || !this.#mayWipe()) return;
      this.#wipeDisk(victim);
      world.after(random.next() * rejoinMsMax, () => {
        if (!victim.isUp) world.start(victim);
      });
      const stopOthers = () => {
        if (world.nowMs >= plan.stableFromMs) return;
        if (!victim.isUp || victim.files.status().state === "waiting") world.after(pollMs, stopOthers);
        else
          for (const machine of others.slice(0, others.length / 2))
            if (machine.isUp && !machine.isPaused) this.#stop(machine, random.next() * troubleMsMax);
      };
      world.after(pollMs, stopOthers);
    });
  }

  /** Adds, drains or removes a node, or changes the number of copies, at a node that is up. */
  async #changeNodes(): Promise<void> {
    const { machines, random, counters } = this.#world;
    const at = machines.find(({ isUp, named }) => isUp && named !== undefined);
    const list = await at?.named!.nodes().catch(() => undefined);
    if (at === undefined || list === undefined) return;
    const change = this.#nodesChange(list);
    if (change === undefined) return;
    this.#world.log(`${at.id}: ${JSON.stringify(change)}`);
    const isMade = await at.named!.changeNodes(change, { ifList: list.version }).then(
      () => true,
      (error: unknown) => this.#world.log(`${at.id}: ${String(error)}`),
    );
    if (isMade !== true) return;
    if (change.what === "add") counters.added += 1;
    if (change.what === "drain") counters.drained += 1;
    const machine = "id" in change ? machines.find(({ id }) => id === change.id) : undefined;
    if (change.what !== "remove" || machine === undefined) return;
    counters.removed += 1;
    if (machine.isUp) this.#world.crash(machine, random.chance(0.5));
  }

  #nodesChange({ nodes }: NodesReport): NodesChange | undefined {
    const { machines, random } = this.#world;
    const spares = machines.filter(({ id }) => !nodes.some((node) => node.id === id));
    const empty = nodes.filter(({ state, contents }) => state !== "serving" && contents === 0);
    const gone = empty.filter(({ keepsNames, state }) => !keepsNames && state === "draining");
    const serving = nodes.filter(({ state }) => state === "serving");
    const at = random.next();
    if (spares.length > 0 && at < 0.4) {
      const machine = random.pick(spares);
      if (!machine.isUp) this.#restartSoon(machine);
      const zone = random.pick(["", "east", "west"]);
      return { what: "add", node: { id: machine.id, address: `${machine.id}:1`, zone } };
    }
    if (gone.length > 0 && at < 0.7) return { what: "remove", id: random.pick(gone).id };
    if (serving.length > 2 && at < 0.85) return { what: "drain", id: random.pick(serving).id };
    if (at < 0.95) return { what: "serve", id: random.pick(nodes).id };
    return { what: "copies", copies: random.pick([2, 3]) };
  }

  #heal(): void {
    this.#world.log("all is well from now on");
    for (const machine of this.#world.machines) {
      machine.side = 0;
      this.#world.cutOff(machine, false);
      machine.isFull = false;
      // Other nodes are started once the list of nodes is known.
      if (!machine.isUp && !machine.joins) this.#world.start(machine);
      else this.#world.resume(machine);
    }
  }
}

const nameOf = ({ path, index, tag }: { path: string; index: number; tag: string }): string =>
  `${path} ${index} ${tag}`;
