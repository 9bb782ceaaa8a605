import type { Store, StoreAnswer, StoreRequest, StoreTraits } from "../../src/delta/store.js";
import type { SimParty } from "./stage/party.js";
import type { SimStore } from "./store.js";

/** What lies between processes and stores. */
export interface Network {
  /**
   * A request goes to a store, takes effect there, and its answer comes back: each in its own time, or never. Also when the process that
   * sent it is stopped meanwhile, or crashes.
   */
  send(from: SimParty, to: SimStore, request: StoreRequest, answer: (answer: StoreAnswer) => void): void;
}

/** One process's way to a store: to the drivers in it this is the store. */
export class StorePath implements Store {
  readonly traits: StoreTraits;
  /** What it leads to: another store may have taken that one's place for processes that begin later. */
  readonly target: SimStore;
  readonly #network: Network;
  readonly #party: SimParty;

  constructor(network: Network, party: SimParty, target: SimStore, delayMs: number) {
    const { name, kind } = target;
    this.traits = { name, kind, durable: true, bytesMax: 65_536, pollMs: delayMs / 3, delayMs };
    this.target = target;
    this.#network = network;
    this.#party = party;
  }

  perform(request: StoreRequest): Promise<StoreAnswer> {
    return new Promise((resolve) => {
      this.#network.send(this.#party, this.target, request, (answer) =>
        this.#party.awake(() => resolve(answer)),
      );
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
