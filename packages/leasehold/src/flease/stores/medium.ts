import type { Protocol } from "../../delta/effects.js";
import { copyMessage } from "../protocol/message.js";
import type { Message } from "../protocol/message.js";
import type { Medium } from "../protocol/proposer-ports.js";
import type { LeaseholdError } from "../../lease/errors.js";
import type { Request } from "./record.js";
import { visit } from "./visit.js";
import type { Revision, Seen, Visit, Visiting } from "./visit.js";

/** Runs a visit to its end. */
export type RunVisit = (protocol: Protocol<Revision<Visit>>, done: (came: Revision<Visit>) => void) => void;

/**
 * Requests for one resource queued at one store. A proposer has one phase in progress and withdraws abandoned
 * ones. Any more are late requests to a slow store, and are dropped like lost messages.
 */
const waitingMax = 8;

/**
 * Resources with visits in progress at one store: about 100 megabytes with the longest names. Further ones
 * are dropped.
 */
const resourcesMax = 65_536;

/** Cached registers per store: a cached lease is renewed without a read. About 50 megabytes. */
const seenMax = 32_768;

export interface MediumSink {
  /** An acceptor has answered, and its store has the state behind the answer. */
  deliver(store: number, reply: Message): void;
  /** Another participant wants a resource that this process holds. */
  heard(resource: string, request: Request): void;
  /** A visit has ended. Without an error, the store has executed the request. */
  visited(store: number, error: LeaseholdError | undefined): void;
}

/**
 * Carries a proposer's requests to acceptors on stores, and their answers back. Like a network, it may lose
 * and delay messages. Unlike a network, it keeps the order of requests for one resource at one store, so that
 * a release never overtakes the write that it withdraws.
 */
export class StoreMedium implements Medium {
  readonly #visiting: Visiting;
  readonly #run: RunVisit;
  readonly #sink: MediumSink;
  /** By store and resource: requests queued behind the visit in progress. */
  readonly #waiting: readonly Map<string, Message[]>[];
  /** By store and resource, least recently used first. */
  readonly #seen: readonly Map<string, Seen>[];

  constructor(visiting: Visiting, run: RunVisit, sink: MediumSink) {
    this.#visiting = visiting;
    this.#run = run;
    this.#sink = sink;
    const stores = Array.from({ length: visiting.stores });
    this.#waiting = stores.map(() => new Map());
    this.#seen = stores.map(() => new Map());
  }

  /** The number of visits in progress, over all stores. */
  get busy(): number {
    return this.#waiting.reduce((sum, resources) => sum + resources.size, 0);
  }

  /** The number of stores with a visit in progress for this resource. */
  busyWith(resource: string): number {
    return this.#waiting.filter((resources) => resources.has(resource)).length;
  }

  /** Copies the message, which is reused. */
  send(store: number, message: Message): void {
    const resources = this.#waiting[store]!;
    const waiting = resources.get(message.resource);
    if (waiting !== undefined) {
      if (waiting.length < waitingMax) waiting.push(copyMessage(message));
      return;
    }
    if (resources.size >= resourcesMax) return;
    resources.set(message.resource, []);
    this.#visit(store, copyMessage(message));
  }

  /** Only a timeout reveals a store that does not answer. */
  reaches(): boolean {
    return true;
  }

  /** Stores have no waiters and send no hints. */
  notify(): boolean {
    return false;
  }

  #visit(store: number, request: Message): void {
    const { resource } = request;
    const seen = this.#seen[store]!.get(resource);
    this.#run(visit(this.#visiting, store, request, seen), (came) => {
      this.#keep(store, resource, came.seen);
      const next = this.#waiting[store]!.get(resource)!.shift();
      if (next === undefined) this.#waiting[store]!.delete(resource);
      if ("error" in came) {
        this.#sink.visited(store, came.error);
      } else {
        const { reply, heard } = came.value;
        if (reply !== undefined) this.#sink.deliver(store, reply);
        if (heard !== undefined) this.#sink.heard(resource, heard);
        this.#sink.visited(store, undefined);
      }
      if (next !== undefined) this.#visit(store, next);
    });
  }

  #keep(store: number, resource: string, seen: Seen | undefined): void {
    const kept = this.#seen[store]!;
    kept.delete(resource);
    if (seen === undefined) return;
    kept.set(resource, seen);
    if (kept.size > seenMax) kept.delete(kept.keys().next().value!);
  }
}
