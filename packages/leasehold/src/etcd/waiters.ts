import type { Random, Timer, Timers } from "../common/ports.js";
import type { Watching } from "../lease/provider.js";
import type { CoreClient, Entry } from "./core-client.js";
import { ContentionBackoff } from "./contention-backoff.js";
import { decodeRecord } from "./record.js";

/** Bound of the resources that one participant waits for with a watch; further waiters poll. */
const waitsMax = 10_000;

/** A wait that is not repeated within this many of its pauses was given up by its caller. */
const pausesKept = 2;

export interface WaitersParts {
  readonly core: CoreClient;
  readonly timers: Timers;
  readonly random: Random;
  /** Wakes the local waiter; false when there is none. */
  hint(resource: string): boolean;
}

interface Wait {
  readonly backoff: ContentionBackoff;
  readonly watching: Watching;
  /** The delay between a release and the hint. */
  delay: Timer | undefined;
  /** The last hint was not followed by an attempt yet. */
  isHinted: boolean;
  /** Ends the wait if nobody repeats it. */
  end: Timer | undefined;
}

/**
 * The waiters of this participant. Each resource's key is watched. Its deletion, a release or the end of a
 * lease, wakes the waiter after a random delay (`contention-backoff.ts`). A waiter that meanwhile sees the
 * next holder's key does not attempt at all. Waiters have no keys in the core, so nothing has to be kept
 * alive or cleaned up there; the price is that waiters acquire in random order.
 */
export class Waiters {
  readonly #parts: WaitersParts;
  readonly #waits = new Map<string, Wait>();

  constructor(parts: WaitersParts) {
    this.#parts = parts;
  }

  /**
   * An attempt was refused because of this entry, and its caller waits. Without a hint it retries after
   * `retryInMs`.
   */
  refused(resource: string, entry: Entry, revision: bigint, retryInMs: number): void {
    const wait = this.#waits.get(resource) ?? this.#begin(resource, entry.key, revision);
    if (wait === undefined) return;
    if (wait.isHinted) wait.backoff.lost();
    wait.isHinted = false;
    wait.backoff.seen(decodeRecord(entry.value)?.spreadMs ?? 0);
    wait.end?.cancel();
    wait.end = this.#parts.timers.after(pausesKept * retryInMs, () => this.forget(resource));
  }

  /** The spread of attempts to write into the next holder's record, ms. */
  handedOnMs(resource: string): number {
    return this.#waits.get(resource)?.backoff.handedOnMs ?? 0;
  }

  forget(resource: string): void {
    const wait = this.#waits.get(resource);
    if (wait === undefined) return;
    this.#waits.delete(resource);
    wait.watching.stop();
    wait.delay?.cancel();
    wait.end?.cancel();
  }

  close(): void {
    for (const resource of this.#waits.keys()) this.forget(resource);
  }

  #begin(resource: string, key: string, revision: bigint): Wait | undefined {
    if (this.#waits.size >= waitsMax) return undefined;
    const watching = this.#parts.core.watch({ key, isPrefix: false }, revision + 1n, {
      deleted: () => this.#released(resource),
      missed: () => this.#released(resource),
      written: (entry) => this.#taken(resource, entry),
    });
    const wait: Wait = {
      backoff: new ContentionBackoff(),
      watching,
      delay: undefined,
      isHinted: false,
      end: undefined,
    };
    this.#waits.set(resource, wait);
    return wait;
  }

  #released(resource: string): void {
    const wait = this.#waits.get(resource);
    if (wait === undefined) return;
    const { timers, random } = this.#parts;
    wait.delay?.cancel();
    const delayMs = wait.backoff.delayMs(random);
    if (delayMs === 0) this.#hint(resource, wait);
    else wait.delay = timers.after(delayMs, () => this.#hint(resource, wait));
  }

  #taken(resource: string, entry: Entry): void {
    const wait = this.#waits.get(resource);
    if (wait === undefined) return;
    wait.delay?.cancel();
    if (wait.delay !== undefined) wait.backoff.spared();
    wait.delay = undefined;
    wait.backoff.seen(decodeRecord(entry.value)?.spreadMs ?? 0);
  }

  #hint(resource: string, wait: Wait): void {
    wait.isHinted = true;
    wait.delay = undefined;
    if (!this.#parts.hint(resource)) this.forget(resource);
  }
}
