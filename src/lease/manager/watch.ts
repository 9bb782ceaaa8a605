import type { KeepAlive } from "../../common/keep-alive.js";
import { LeaseholdError } from "../errors.js";
import { plainData } from "../plain-data.js";
import type { Watching } from "../provider.js";
import { watchedMax } from "../watch-set.js";
import { Readers } from "./readers.js";
import type { Change, ResourceHint } from "../types.js";

/** What has last been told of a resource. */
interface Told {
  readonly state: Change["state"];
  readonly token: bigint;
  /** With what its holder lets others read, which may come later. */
  readonly hasData: boolean;
}

/** Begins to look: what `Inspection.watch` does with its prefix. */
export type Subscribe = (
  told: (hint: ResourceHint) => void,
  failed: (error: LeaseholdError) => void,
) => Watching;

/**
 * The changes below a prefix as a program reads them. What a slow reader has not taken is merged, the newest
 * for each resource, so that it needs no more room than there are resources. Nothing is asked for before the
 * first is read.
 */
export class Watch implements AsyncIterableIterator<Change, undefined> {
  readonly #subscribe: Subscribe;
  readonly #onEnd: () => void;
  readonly #held = new Map<string, Told>();
  /** Free ones are remembered, oldest first, so that no older tenure is told after a newer one. */
  readonly #free = new Map<string, Told>();
  readonly #pending = new Map<string, Change>();
  readonly #readers: Readers<Change>;
  #watching: Watching | undefined;
  #hasEnded = false;

  /** @param keepAlive is used as long as a reader waits */
  constructor(subscribe: Subscribe, onEnd: () => void, keepAlive?: KeepAlive) {
    this.#subscribe = subscribe;
    this.#onEnd = onEnd;
    this.#readers = new Readers(() => this.#takeFirst(), keepAlive);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Change, undefined>> {
    if (!this.#hasEnded)
      this.#watching ??= this.#subscribe(
        (hint) => this.#tell(hint),
        (error) => this.end(error),
      );
    return this.#readers.next();
  }

  /** The reader wants no more. */
  return(): Promise<IteratorResult<Change, undefined>> {
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Ends the watch, for an error if there is one; what has not been read yet is not told any more. */
  end(error?: unknown): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#watching?.stop();
    for (const map of [this.#pending, this.#held, this.#free]) map.clear();
    this.#onEnd();
    this.#readers.end(error);
  }

  #tell(hint: ResourceHint): void {
    if (this.#hasEnded) return;
    const { resource } = hint;
    const told = this.#held.get(resource) ?? this.#free.get(resource);
    const change = changeOf(hint, told);
    if (change === undefined) return;
    const [into, outOf] = change.state === "held" ? [this.#held, this.#free] : [this.#free, this.#held];
    outOf.delete(resource);
    into.set(resource, { state: change.state, token: change.token, hasData: change.data !== undefined });
    this.#pending.set(resource, change);
    this.#forget();
    this.#readers.serve();
  }

  /** Makes room by forgetting what has been free the longest. */
  #forget(): void {
    while (this.#held.size + this.#free.size > watchedMax) {
      const oldest = this.#free.keys().next().value;
      if (oldest === undefined) {
        this.end(new LeaseholdError("WATCH_TOO_WIDE", `more than ${watchedMax} resources are held there`));
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

/**
 * What is new in a hint; `undefined` when nothing is, or when it tells of an earlier tenure than was told.
 */
function changeOf(hint: ResourceHint, told: Told | undefined): (Change & { token: bigint }) | undefined {
  const { resource, state } = hint;
  if (state === "free") {
    if (told === undefined || told.state === "free") return undefined;
    return plainData({ resource, state, token: told.token });
  }
  const { token, holder, label, data, remainingMs } = hint;
  if (state !== "held" || token === undefined) return undefined;
  if (told !== undefined && token < told.token) return undefined;
  const isSame = token === told?.token && told.state === "held";
  if (isSame && (data === undefined || told.hasData)) return undefined;
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
