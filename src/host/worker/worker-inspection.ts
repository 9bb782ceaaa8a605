import type { Inspection, Watching } from "../../lease/provider.js";
import type { Explanation, HolderAction, ResourceHint } from "../../lease/types.js";
import type { AnswerValue, CallWithoutNumber, ToWorker } from "./messages.js";

/** What the inspection asks of the provider whose thread it lives beside. */
export interface WorkerCaller {
  call(call: CallWithoutNumber): Promise<AnswerValue>;
  post(message: ToWorker): void;
}

/** The leases of others, as the client in the other thread sees them. */
export class WorkerInspection implements Inspection {
  readonly #caller: WorkerCaller;
  readonly #watches = new Map<number, (hint: ResourceHint) => void>();
  #nextWatch = 1;

  constructor(caller: WorkerCaller) {
    this.#caller = caller;
  }

  watch(prefix: string, told: (hint: ResourceHint) => void): Watching {
    const watch = this.#nextWatch++;
    this.#watches.set(watch, told);
    this.#caller.post({ type: "watch", watch, prefix });
    return {
      stop: () => {
        if (this.#watches.delete(watch)) this.#caller.post({ type: "unwatch", watch });
      },
    };
  }

  /** From the other thread. */
  told(watch: number, hint: ResourceHint): void {
    this.#watches.get(watch)?.(hint);
  }

  async explain(resource: string, timeoutMs: number): Promise<Explanation> {
    return (await this.#inspect("explain", resource, timeoutMs)) as Explanation;
  }

  async requestRelease(resource: string, timeoutMs: number): Promise<HolderAction> {
    return (await this.#inspect("requestRelease", resource, timeoutMs)) as HolderAction;
  }

  async breakLease(resource: string, timeoutMs: number): Promise<HolderAction> {
    return (await this.#inspect("breakLease", resource, timeoutMs)) as HolderAction;
  }

  #inspect(
    method: "explain" | "requestRelease" | "breakLease",
    resource: string,
    timeoutMs: number,
  ): Promise<AnswerValue> {
    return this.#caller.call({ type: "inspect", method, resource, timeoutMs });
  }
}
