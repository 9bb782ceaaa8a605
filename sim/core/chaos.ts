import type { CoreWorld } from "./world/world.js";

/** What goes wrong, and when. */
export class CoreChaos {
  readonly #world: CoreWorld;

  constructor(world: CoreWorld) {
    this.#world = world;
  }

  begin(): void {
    const { plan } = this.#world;
    this.#every(plan.crashEveryMs, () => this.#crash());
    this.#every(plan.partitionEveryMs, () => this.#part());
    this.#every(plan.pauseEveryMs, () => this.#pause());
    this.#every(plan.transferEveryMs, () => this.#transfer());
    this.#world.at(plan.stableFromMs, () => this.#heal());
  }

  #every(meanMs: number, body: () => void): void {
    const world = this.#world;
    if (meanMs === Infinity) return;
    const atMs = world.nowMs + world.random.exponential(meanMs);
    if (atMs >= world.plan.stableFromMs) return;
    world.at(atMs, () => {
      body();
      this.#every(meanMs, body);
    });
  }

  /** One server, now and then all of them; the leader as often as not. */
  #crash(): void {
    const { plan, random, servers } = this.#world;
    const leader = this.#world.leader();
    const all = random.chance(0.1);
    const one = leader !== undefined && random.chance(0.5) ? leader : random.pick(servers);
    for (const server of all ? servers : [one]) {
      if (!server.isUp) continue;
      this.#world.crash(server);
      this.#world.after(random.next() * plan.downMsMax, () => {
        if (!server.isUp) this.#world.start(server);
      });
    }
  }

  #part(): void {
    const { counters, random, servers, side } = this.#world;
    counters.partitions += 1;
    side.clear();
    if (random.chance(0.3)) {
      this.#world.say("the network is whole again");
      return;
    }
    for (const { id } of servers) side.set(id, random.below(2));
    const leader = this.#world.leader();
    if (leader !== undefined && random.chance(0.5)) {
      side.clear();
      side.set(leader.id, 1);
    }
    this.#world.say(`the network is parted: ${[...side].map(([id, part]) => `${id}:${part}`).join(" ")}`);
  }

  #pause(): void {
    const { plan, random, servers } = this.#world;
    const leader = this.#world.leader();
    const server = leader !== undefined && random.chance(0.5) ? leader : random.pick(servers);
    const forMs = Math.min(random.next() * plan.pauseMaxMs, plan.stableFromMs - this.#world.nowMs);
    this.#world.pause(server, forMs);
  }

  #transfer(): void {
    const { counters, random, servers } = this.#world;
    counters.transfers += 1;
    this.#world.leader()?.step({ kind: "transfer", to: random.pick(servers).id });
  }

  #heal(): void {
    this.#world.say("all is well from here on");
    this.#world.side.clear();
    for (const server of this.#world.servers) if (!server.isUp) this.#world.start(server);
  }
}
