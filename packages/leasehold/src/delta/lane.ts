import { LeaseholdError } from "../lease/errors.js";
import type { Store, StoreAnswer, StoreCaller, StoreRequest } from "./store.js";

/**
 * Operations in flight at one store: enough to keep a distant store busy, few enough for a disk. A hung store
 * holds no more than these.
 */
export const underWayMax = 128;

/** Queued operations of one store: a renewal of each lease that a process can reasonably hold. */
export const waitingMax = 65_536;

/** One request to one store. */
export interface Operation extends StoreCaller {
  readonly request: StoreRequest;
  /** Called once, unless the operation is dropped before it was sent. */
  done(answer: StoreAnswer): void;
}

/** The queue for one store. It bounds the operations in flight there. */
export class Lane {
  readonly store: Store;
  readonly #waiting = new Set<Operation>();
  #underWay = 0;
  #isClosed = false;

  constructor(store: Store) {
    this.store = store;
  }

  /** True when the operation was queued and can still be dropped. */
  send(operation: Operation): boolean {
    const isFull = this.#underWay >= underWayMax;
    const waits = !this.#isClosed && isFull && this.#waiting.size < waitingMax;
    if (waits) this.#waiting.add(operation);
    else if (this.#isClosed) operation.done(this.#refusal("it has been closed"));
    else if (isFull) operation.done(this.#refusal(`${waitingMax} operations wait for it already`));
    else this.#perform(operation);
    return waits;
  }

  /** Drops an operation that was not sent yet. */
  drop(operation: Operation): void {
    this.#waiting.delete(operation);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    for (const operation of this.#waiting) operation.done(this.#refusal("it has been closed"));
    this.#waiting.clear();
    return this.store.close();
  }

  #perform(operation: Operation): void {
    this.#underWay += 1;
    const end = (answer: StoreAnswer) => {
      this.#underWay -= 1;
      const next = this.#waiting.values().next().value;
      if (next !== undefined) {
        this.#waiting.delete(next);
        this.#perform(next);
      }
      operation.done(answer);
    };
    this.store.perform(operation.request, operation).then(end, (error: unknown) => {
      // An adapter that rejects, in violation of its contract, must not end the process or look like an empty
      // store.
      end(this.#refusal(String(error)));
    });
  }

  #refusal(why: string): StoreAnswer {
    return {
      kind: "failed",
      error: new LeaseholdError("STORE_UNAVAILABLE", `${this.store.traits.name}: ${why}`),
    };
  }
}
