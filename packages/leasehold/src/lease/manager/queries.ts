import { unlessAborted, unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import { mapInChunks, sortInChunks } from "../../common/chunks.js";
import { type KeepAlive, keptAlive } from "../../common/keep-alive.js";
import type { World } from "../../common/ports.js";
import { parseDuration } from "../duration.js";
import { LeaseholdError } from "../errors.js";
import { LeaderWatch } from "./leader-watch.js";
import { type CallWithOptions, checkOptions } from "../option-names.js";
import { plainData } from "../plain-data.js";
import type { Inspection, Provider } from "../provider.js";
import { checkResourceName, checkResourcePrefix } from "../resource-name.js";
import type {
  Explanation,
  HolderAction,
  HolderHint,
  LeaderOptions,
  ListOptions,
  QueryOptions,
  ResourceHint,
  WatchOptions,
} from "../types.js";
import { Watch } from "./watch.js";

const queryTimeoutDefault = "5s";

/** The maximum number of open watches of one participant: each costs the members a list. */
const watchesMax = 16;

/** A participant's queries and actions on the leases of others. */
export class Queries {
  readonly #provider: Provider;
  readonly #world: Pick<World, "timers" | "keepAlive">;
  readonly #watches = new Set<Watch>();
  #isClosed = false;

  constructor(provider: Provider, world: Pick<World, "timers" | "keepAlive">) {
    this.#provider = provider;
    this.#world = world;
  }

  async holder(resource: string, options: QueryOptions): Promise<HolderHint> {
    checkResourceName(resource);
    const ask = (timeoutMs: number) => this.#provider.query(resource, timeoutMs);
    return plainData(await this.#ask("holder", options, ask));
  }

  async list(prefix: string, options: ListOptions): Promise<ResourceHint[]> {
    checkResourcePrefix(prefix);
    const { timers } = this.#world;
    return this.#ask("list", options, async (timeoutMs) => {
      const { onIncomplete, signal } = options;
      const incomplete = onIncomplete && ((why: string) => (signal?.aborted ? undefined : onIncomplete(why)));
      const hints = await this.#provider.list(prefix, timeoutMs, incomplete);
      return sortInChunks(await mapInChunks(hints, plainData, timers), byResource, timers);
    });
  }

  async explain(resource: string, options: QueryOptions): Promise<Explanation> {
    checkResourceName(resource);
    const ask = (timeoutMs: number) => this.#inspection().explain(resource, timeoutMs);
    return plainData(await this.#ask("explain", options, ask));
  }

  async requestRelease(resource: string, options: QueryOptions): Promise<HolderAction> {
    checkResourceName(resource);
    const ask = (timeoutMs: number) => this.#inspection().requestRelease(resource, timeoutMs);
    return plainData(await this.#ask("requestRelease", options, ask));
  }

  async handOver(resource: string, to: string, options: QueryOptions): Promise<HolderAction> {
    checkResourceName(resource);
    const inspection = this.#inspection();
    if (!this.#provider.guarantees.handOver || inspection.favour === undefined)
      throw new LeaseholdError("UNSUPPORTED", "this ground does not support handing over");
    const ask = async (timeoutMs: number) => {
      if (!(await inspection.favour!(resource, to, timeoutMs)))
        throw new LeaseholdError("NOT_WAITING", `${JSON.stringify(to)} does not wait for ${resource}`);
      return inspection.requestRelease(resource, timeoutMs);
    };
    return plainData(await this.#ask("handOver", options, ask));
  }

  async break(resource: string, options: QueryOptions): Promise<HolderAction> {
    checkResourceName(resource);
    const ask = (timeoutMs: number) => this.#inspection().breakLease(resource, timeoutMs);
    return plainData(await this.#ask("break", options, ask));
  }

  leader(resource: string, options: LeaderOptions): LeaderWatch {
    checkOptions("leader", options);
    const changes = this.#watch(resource, { signal: options.signal, exact: true });
    const ask = async () => this.#provider.query(resource, parseDuration(queryTimeoutDefault));
    return new LeaderWatch(resource, changes, ask, this.#world);
  }

  watch(prefix: string, options: WatchOptions): Watch {
    checkOptions("watch", options);
    return this.#watch(prefix, options, this.#world.keepAlive);
  }

  /** Ends all watches; later calls are refused. */
  close(): void {
    this.#isClosed = true;
    for (const watch of this.#watches) watch.end();
  }

  #watch(prefix: string, options: WatchOptions, keepAlive?: KeepAlive): Watch {
    this.#assertOpen();
    if (options.exact === true) checkResourceName(prefix);
    else checkResourcePrefix(prefix);
    const inspection = this.#inspection();
    if (this.#watches.size >= watchesMax)
      throw new LeaseholdError("TOO_MANY_WAITERS", `this participant already has ${watchesMax} open watches`);
    const { signal, exact = false } = options;
    const end = () => watch.end();
    const watch: Watch = new Watch(
      (report, failed) => {
        const reportExact = (hint: ResourceHint) => (hint.resource === prefix ? report(hint) : undefined);
        return inspection.watch(prefix, exact ? reportExact : report, failed);
      },
      () => {
        this.#watches.delete(watch);
        unwatchAbort(signal, end);
      },
      keepAlive,
    );
    this.#watches.add(watch);
    watchAbort(signal, end);
    return watch;
  }

  /** A query that the caller may abandon; the request in flight then ends with its timeout. */
  async #ask<T>(
    call: CallWithOptions,
    options: QueryOptions,
    ask: (timeoutMs: number) => Promise<T>,
  ): Promise<T> {
    this.#assertOpen();
    checkOptions(call, options);
    const { signal, timeout = queryTimeoutDefault } = options;
    const timeoutMs = parseDuration(timeout, "timeout");
    signal?.throwIfAborted();
    return keptAlive(this.#world.keepAlive, () => unlessAborted(ask(timeoutMs), signal));
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new LeaseholdError("CLOSED");
  }

  #inspection(): Inspection {
    if (this.#provider.inspection !== undefined) return this.#provider.inspection;
    throw new LeaseholdError("UNSUPPORTED");
  }
}

function byResource(one: ResourceHint, other: ResourceHint): number {
  return one.resource < other.resource ? -1 : 1;
}
