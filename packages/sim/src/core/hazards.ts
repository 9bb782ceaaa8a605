import { Chaos } from "../kit/chaos.js";
import { compact } from "./world/requests.js";
import type { CoreWorld } from "./world/world.js";

/** The faults of a core. Random compactions of its history are among them. */
export class CoreHazards {
  readonly #world: CoreWorld;

  constructor(world: CoreWorld) {
    this.#world = world;
  }

  begin(): void {
    const { plan } = this.#world;
    const untilMs = plan.stableFromMs;
    new Chaos(this.#world).begin([
      { everyMs: plan.compactEveryMs, untilMs, happens: () => this.#compact() },
      { everyMs: plan.cutEveryMs ?? Infinity, untilMs, happens: () => this.#world.cutConnection() },
      { everyMs: plan.crashEveryMs, untilMs, happens: () => this.#crash() },
      { everyMs: plan.partitionEveryMs, untilMs, happens: () => this.#part() },
      { everyMs: plan.pauseEveryMs, untilMs, happens: () => this.#pause() },
      { everyMs: plan.transferEveryMs, untilMs, happens: () => this.#transfer() },
    ]);
    this.#world.at(plan.stableFromMs, () => this.#heal());
  }

  #compact(): void {
    const { counters, random, reference, servers } = this.#world;
    const revision = BigInt(Math.floor(reference.state.revisions.current * random.next()));
    if (revision > 0n) this.#world.call(random.pick(servers), compact(revision), () => {});
    counters.compactions += 1;
  }

  /** Crashes one server, which half of the time is the leader; now and then crashes all of them. */
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
      this.#world.log("the network is whole again");
      return;
    }
    for (const { id } of servers) side.set(id, random.below(2));
    const leader = this.#world.leader();
    if (leader !== undefined && random.chance(0.5)) {
      side.clear();
      side.set(leader.id, 1);
    }
    this.#world.log(`the network is parted: ${[...side].map(([id, part]) => `${id}:${part}`).join(" ")}`);
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
    this.#world.log("all is well from here on");
    this.#world.side.clear();
    for (const server of this.#world.servers) if (!server.isUp) this.#world.start(server);
    this.#world.retireRemoved();
  }
}
