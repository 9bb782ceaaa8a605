import type { World } from "leasehold/inner/common/ports.js";
import { Driver } from "leasehold/inner/delta/driver.js";
import { Farm } from "leasehold/inner/delta/farm/farm.js";
import type { DeltaSettings } from "leasehold/inner/delta/lease-protocol.js";
import type { Store, StoreAnswer, StoreRequest, StoreTraits } from "leasehold/inner/delta/store.js";
import type { SimStore } from "./store.js";

/** A process that uses stores. */
export interface StoreUser {
  /** Runs something when the process is not stopped, and never after its end. */
  awake(body: () => void): void;
}

/** The network between processes and stores. */
export interface StoreNetwork<User> {
  /**
   * A request reaches a store, takes effect there, and its answer returns: each with its own delay, or never.
   * This holds even if the process that sent it stops or crashes meanwhile.
   */
  send(from: User, to: SimStore, request: StoreRequest, answer: (answer: StoreAnswer) => void): void;
}

/** One process's way to a store: to the drivers in it this is the store. */
export class StorePath<User extends StoreUser> implements Store {
  readonly traits: StoreTraits;
  /** The target: another store may have replaced it for processes that start later. */
  readonly target: SimStore;
  readonly #network: StoreNetwork<User>;
  readonly #user: User;

  constructor(network: StoreNetwork<User>, user: User, target: SimStore, delayMs: number) {
    const { name, kind } = target;
    this.traits = { name, kind, durable: true, bytesMax: 65_536, pollMs: delayMs / 3, delayMs };
    this.target = target;
    this.#network = network;
    this.#user = user;
  }

  perform(request: StoreRequest): Promise<StoreAnswer> {
    return new Promise((resolve) => {
      this.#network.send(this.#user, this.target, request, (answer) =>
        this.#user.awake(() => resolve(answer)),
      );
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** All stores know the farm before a run begins: its founding is not tested there. */
export async function foundFarm(
  stores: readonly SimStore[],
  settings: DeltaSettings,
  world: World,
  epochsAhead?: ConstructorParameters<typeof Farm>[2],
): Promise<void> {
  const network: StoreNetwork<StoreUser> = {
    send: (_from, to, request, answer) => answer(to.perform(request, "founder")),
  };
  const founder = { awake: (body: () => void) => body() };
  const paths = stores.map((store) => new StorePath(network, founder, store, settings.delayMs));
  const farm = new Farm(
    paths.map(({ traits }) => traits),
    settings,
    epochsAhead,
  );
  await new Driver(paths, world).run(farm.look());
}
