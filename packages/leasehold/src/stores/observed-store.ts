import type { Store, StoreAnswer, StoreCaller, StoreRequest, StoreTraits } from "../delta/store.js";
import { isAnyoneListening, publish } from "../runtime/store-operations.js";

/** A store that publishes its operations while there is a listener. */
export class ObservedStore implements Store {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  get traits(): StoreTraits {
    return this.#store.traits;
  }

  perform(request: StoreRequest, caller?: StoreCaller): Promise<StoreAnswer> {
    return isAnyoneListening() ? this.#observed(request, caller) : this.#store.perform(request, caller);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #observed(request: StoreRequest, caller: StoreCaller | undefined): Promise<StoreAnswer> {
    const { name: store } = this.traits;
    const begunMs = performance.now();
    publish({ kind: "begun", store });
    const answer = await this.#store.perform(request, caller);
    const tookMs = performance.now() - begunMs;
    publish({ kind: "ended", store, operation: request.op, outcome: outcomeOf(answer), tookMs });
    return answer;
  }
}

function outcomeOf(answer: StoreAnswer): string {
  if (answer.kind === "failed") return answer.error.code;
  return answer.kind === "conflict" ? "conflict" : "ok";
}
