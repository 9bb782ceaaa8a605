import type { CoreAddress } from "leasehold/inner/etcd/terms.js";
import { GrpcCoreClient } from "leasehold/inner/etcd/grpc-core-client.js";
import { CoreProvider } from "leasehold/inner/etcd/provider.js";
import { LeaseManager } from "leasehold/inner/lease/manager/lease-manager.js";
import { SharedWall, SimClock } from "../../kit/clocks.js";
import { SimParty } from "../../kit/party.js";
import { Program } from "./program.js";
import type { HoldersStage } from "./stage.js";
import { type Trouble, Way } from "./way.js";

/** A process with leases of the core: client, provider and waist as in production, and programs on them. */
export class HolderProcess {
  readonly party: SimParty;
  readonly clock: SimClock;
  readonly #stage: HoldersStage;
  readonly #leases: LeaseManager;
  readonly #ways: Way[] = [];

  constructor(stage: HoldersStage, index: number, incarnation: number) {
    const { plan, world } = stage;
    this.#stage = stage;
    this.clock = new SimClock(new SharedWall(), stage.random.between(0, 1e6), true);
    this.clock.setRate(world.nowMs, plan.rates[index]!);
    const party = new SimParty(world, index, `p${index}.${incarnation}`, this.clock);
    this.party = party;
    const endpoints = Array.from({ length: world.plan.servers }, (_, address) => `${address}`);
    const connect = (endpoint: string) => {
      const way = new Way(world, party, Number(endpoint));
      this.#ways.push(way);
      return way;
    };
    const core = new GrpcCoreClient(endpoints, { connect }, party);
    const address: CoreAddress = {
      endpoints,
      keyPrefix: "leasehold/",
      ttlMaxMs: plan.ttlMs,
      clockRateError: world.plan.clockRateError,
    };
    const drawLeaseId = () => stage.drawLeaseId();
    const parts = { core, world: party, address, holder: party.writer, label: "", drawLeaseId };
    this.#leases = new LeaseManager(new CoreProvider(parts), party);
  }

  begin(): void {
    const { plan, world } = this.#stage;
    world.log(`${this.party.writer} starts`);
    world.stir();
    const running = Array.from({ length: plan.programs }, (_, index) =>
      new Program(this.#stage, this.party, this.#leases, index).live(),
    );
    Promise.all(running).then(
      () => this.leave(),
      (error: unknown) => world.fail(error),
    );
  }

  get isAlive(): boolean {
    return this.party.isAlive;
  }

  /** kill -9: requests in flight still arrive. */
  crash(): void {
    this.party.isGone = true;
    this.#over("crashes");
  }

  /** A clean exit: releases its leases. */
  leave(): void {
    this.#over("leaves");
    this.#stage.world.stir();
    const gone = () => {
      this.party.isGone = true;
    };
    void this.#leases.close().then(gone, gone);
  }

  #over(how: string): void {
    const { claims, world } = this.#stage;
    world.log(`${this.party.writer} ${how}`);
    this.party.isAlive = false;
    claims.gone(this.party.writer);
  }

  cut(trouble: Trouble): void {
    for (const way of this.#ways) if (this.#stage.random.chance(0.7)) way.cut(trouble);
  }
}
