import type { LeaseholdError } from "../../../lease/errors.js";
import type { Inspection, Watching } from "../../../lease/provider.js";
import type { Explanation, HolderAction, ResourceHint } from "../../../lease/types.js";
import type { Answer, Asked, CallName, ToWorker } from "./messages.js";

/** The provider, as seen by the inspection. */
export interface WorkerCaller {
  call<Name extends CallName>(name: Name, asked: Asked<Name>): Promise<Answer<Name>>;
  post(message: ToWorker): void;
}

interface Watcher {
  readonly report: (hint: ResourceHint) => void;
  readonly failed: (error: LeaseholdError) => void;
}

/** Reads other participants' leases through the client in the other thread. */
export class WorkerInspection implements Inspection {
  readonly #caller: WorkerCaller;
  readonly #watches = new Map<number, Watcher>();
  #nextWatch = 1;
  #gone: LeaseholdError | undefined;

  constructor(caller: WorkerCaller) {
    this.#caller = caller;
  }

  watch(
    prefix: string,
    report: (hint: ResourceHint) => void,
    failed: (error: LeaseholdError) => void,
  ): Watching {
    const gone = this.#gone;
    if (gone !== undefined) {
      void Promise.resolve().then(() => failed(gone));
      return { stop: () => undefined };
    }
    const watch = this.#nextWatch++;
    this.#watches.set(watch, { report, failed });
    this.#caller.post({ type: "watch", watch, prefix });
    return {
      stop: () => {
        if (this.#watches.delete(watch)) this.#caller.post({ type: "unwatch", watch });
      },
    };
  }

  /** Called by the other thread. */
  reported(watch: number, hint: ResourceHint): void {
    this.#watches.get(watch)?.report(hint);
  }

  /** The other thread has ended. */
  end(why: LeaseholdError): void {
    this.#gone = why;
    const watches = [...this.#watches.values()];
    this.#watches.clear();
    for (const { failed } of watches) failed(why);
  }

  explain(resource: string, timeoutMs: number): Promise<Explanation> {
    return this.#caller.call("explain", { resource, timeoutMs });
  }

  requestRelease(resource: string, timeoutMs: number): Promise<HolderAction> {
    return this.#caller.call("requestRelease", { resource, timeoutMs });
  }

  favour(resource: string, to: string, timeoutMs: number): Promise<boolean> {
    return this.#caller.call("favour", { resource, to, timeoutMs });
  }

  breakLease(resource: string, timeoutMs: number): Promise<HolderAction> {
    return this.#caller.call("breakLease", { resource, timeoutMs });
  }
}
