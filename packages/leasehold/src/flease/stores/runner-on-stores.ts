import type { LeaseholdError } from "../../lease/errors.js";
import { FleaseRunner } from "../runner.js";
import type { RunnerOptions } from "../runner.js";
import { Agreement } from "./agreement.js";
import { StoreMedium } from "./medium.js";
import type { RunVisit } from "./medium.js";
import type { Request } from "./record.js";
import { StoreAcceptor } from "./store-acceptor.js";
import type { Visiting } from "./visit.js";

export interface RunnerOnStoresOptions extends Omit<RunnerOptions, "acceptor" | "medium"> {
  readonly label?: string | undefined;
  /** Number of stores, n. */
  readonly stores: number;
  /** The marker by which a store is identified. */
  idOf(store: number): string;
  readonly runVisit: RunVisit;
  /** Another participant wants a resource that is held here. */
  heard(resource: string, request: Request): void;
  /** A visit has ended; `error` says why it failed. */
  visited(store: number, error: LeaseholdError | undefined): void;
}

/**
 * Runs Flease's proposer, and its acceptors on stores. Each participant executes these on demand. How a visit
 * reaches a store is up to `runVisit`.
 */
export class RunnerOnStores {
  readonly runner: FleaseRunner;
  readonly visiting: Visiting;
  readonly medium: StoreMedium;

  constructor(options: RunnerOnStoresOptions) {
    const { settings, label, stores } = options;
    this.visiting = {
      acceptor: new StoreAcceptor(settings, label),
      agreement: new Agreement(settings, stores),
      stores,
      idOf: (store) => options.idOf(store),
      now: () => this.runner.now(),
      timeoutMs: settings.rpcTimeoutMs,
    };
    this.medium = new StoreMedium(this.visiting, options.runVisit, {
      deliver: (store, reply) => {
        this.runner.arrived();
        this.runner.receive(store, reply);
      },
      heard: (resource, request) => options.heard(resource, request),
      visited: (store, error) => {
        options.visited(store, error);
        this.runner.poke();
      },
    });
    // Leases of a former incarnation on the stores run out (3.2).
    this.runner = new FleaseRunner({ ...options, acceptor: false, medium: this.medium });
  }
}
