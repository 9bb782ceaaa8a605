import type { KeepAlive } from "../../common/keep-alive.js";
import { LeaseholdError } from "../errors.js";
import { plainData } from "../plain-data.js";
import type { Watching } from "../provider.js";
import { watchedMax } from "../watch-set.js";
import { PendingReads } from "./pending-reads.js";
import type { Change, ResourceHint } from "../types.js";

/** The last reported change of a resource. */
interface Reported {
  readonly state: Change["state"];
  readonly token: bigint;
  /** The holder's data has been reported, too; it may arrive later. */
  readonly hasData: boolean;
}

/** Starts the watch: `Inspection.watch` with its prefix bound. */
export type Subscribe = (
  report: (hint: ResourceHint) => void,
  failed: (error: LeaseholdError) => void,
) => Watching;

/**
 * The changes below a prefix, as an iterator. Of changes that a slow reader has not taken, only the newest
 * for each resource is kept, so memory is bounded by the number of resources. Nothing is requested before the
 * first read.
 */
export class Watch implements AsyncIterableIterator<Change, undefined> {
  readonly #subscribe: Subscribe;
  readonly #onEnd: () => void;
  readonly #held = new Map<string, Reported>();
  /**
   * Free resources are remembered, oldest first, so that an older tenure is never reported after a newer one.
   */
  readonly #free = new Map<string, Reported>();
  readonly #pending = new Map<string, Change>();
  readonly #reads: PendingReads<Change>;
  #watching: Watching | undefined;
  #hasEnded = false;

  /** @param keepAlive keeps the process alive while a reader waits */
  constructor(subscribe: Subscribe, onEnd: () => void, keepAlive?: KeepAlive) {
    this.#subscribe = subscribe;
    this.#onEnd = onEnd;
    this.#reads = new PendingReads(() => this.#takeFirst(), keepAlive);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Change, undefined>> {
    if (!this.#hasEnded)
      this.#watching ??= this.#subscribe(
        (hint) => this.#report(hint),
        (error) => this.end(error),
      );
    return this.#reads.next();
  }

  /** The reader has finished. */
  return(): Promise<IteratorResult<Change, undefined>> {
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Ends the watch, with the given error if any; unread changes are dropped. */
  end(error?: unknown): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#watching?.stop();
    for (const map of [this.#pending, this.#held, this.#free]) map.clear();
    this.#onEnd();
    this.#reads.end(error);
  }

  #report(hint: ResourceHint): void {
    if (this.#hasEnded) return;
    const { resource } = hint;
    const last = this.#held.get(resource) ?? this.#free.get(resource);
    const change = changeOf(hint, last);
    if (change === undefined) return;
    const [into, outOf] = change.state === "held" ? [this.#held, this.#free] : [this.#free, this.#held];
    outOf.delete(resource);
    into.set(resource, { state: change.state, token: change.token, hasData: change.data !== undefined });
    this.#pending.set(resource, change);
    this.#forget();
    this.#reads.serve();
  }

  /** Makes room by forgetting the resources that have been free the longest. */
  #forget(): void {
    while (this.#held.size + this.#free.size > watchedMax) {
      const oldest = this.#free.keys().next().value;
      if (oldest === undefined) {
        this.end(
          new LeaseholdError("WATCH_TOO_WIDE", `more than ${watchedMax} resources are held below the prefix`),
        );
        return;
      }
      this.#free.delete(oldest);
      this.#pending.delete(oldest);
    }
  }

  #takeFirst(): Change | undefined {
    const [change] = this.#pending.values();
    if (change !== undefined) this.#pending.delete(change.resource);
    return change;
  }
}

/** The change in a hint; `undefined` if there is none, or if its tenure is older than the reported one. */
function changeOf(hint: ResourceHint, last: Reported | undefined): (Change & { token: bigint }) | undefined {
  const { resource, state } = hint;
  if (state === "free") {
    if (last === undefined || last.state === "free") return undefined;
    return plainData({ resource, state, token: last.token });
  }
  const { token, holder, label, data, remainingMs } = hint;
  if (state !== "held" || token === undefined) return undefined;
  if (last !== undefined && token < last.token) return undefined;
  const isSame = token === last?.token && last.state === "held";
  if (isSame && (data === undefined || last.hasData)) return undefined;
  return plainData({
    resource,
    state,
    token,
    ...(holder !== undefined && { holder }),
    ...(label !== undefined && { label }),
    ...(data !== undefined && { data }),
    ...(remainingMs !== undefined && { remainingMs }),
  });
}
