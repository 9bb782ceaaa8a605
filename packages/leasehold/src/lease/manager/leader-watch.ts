import type { Timer, World } from "../../common/ports.js";
import type { Change, HolderHint, LeaderObserver } from "../types.js";
import { PendingReads } from "./pending-reads.js";

/** The interval of queries while the leader is unknown. */
const askAgainMs = 1_000;

/**
 * Follows the changes of one name, whether or not anybody reads them. A change that was not read in time is
 * replaced by a newer one.
 */
export class LeaderWatch implements LeaderObserver {
  readonly #resource: string;
  readonly #changes: AsyncIterableIterator<Change, undefined>;
  readonly #ask: () => Promise<HolderHint>;
  readonly #timers: World["timers"];
  readonly #reads: PendingReads<Change>;
  #current: Change | undefined;
  #unread: Change | undefined;
  #again: Timer | undefined;
  #hasEnded = false;

  /**
   * @param changes read until the watch ends, so it must not keep the process alive
   * @param ask queries the holder, because `changes` reports nothing while nobody holds the name
   */
  constructor(
    resource: string,
    changes: AsyncIterableIterator<Change, undefined>,
    ask: () => Promise<HolderHint>,
    world: Pick<World, "timers" | "keepAlive">,
  ) {
    this.#resource = resource;
    this.#changes = changes;
    this.#ask = ask;
    this.#timers = world.timers;
    this.#reads = new PendingReads(() => this.#takeUnread(), world.keepAlive);
    void this.#follow();
    void this.#begin();
  }

  get current(): Change | undefined {
    return this.#current;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Change, undefined>> {
    return this.#reads.next();
  }

  /** The reader has finished. */
  async return(): Promise<IteratorResult<Change, undefined>> {
    this.#end();
    await this.#changes.return?.();
    return { done: true, value: undefined };
  }

  /** Repeats the query until the leader is known. */
  async #begin(): Promise<void> {
    const state = await this.#ask().then(
      (hint) => hint.state,
      () => "unknown",
    );
    if (this.#hasEnded || this.#current !== undefined) return;
    if (state === "free") this.#publish({ resource: this.#resource, state });
    else this.#again = this.#timers.after(askAgainMs, () => void this.#begin());
  }

  async #follow(): Promise<void> {
    try {
      for await (const change of this.#changes) this.#publish(change);
      this.#end();
    } catch (error) {
      this.#end(error);
    }
  }

  #publish(change: Change): void {
    if (this.#hasEnded) return;
    this.#again?.cancel();
    this.#current = change;
    this.#unread = change;
    this.#reads.serve();
  }

  #end(error?: unknown): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#again?.cancel();
    this.#current = undefined;
    this.#unread = undefined;
    this.#reads.end(error);
  }

  #takeUnread(): Change | undefined {
    const change = this.#unread;
    this.#unread = undefined;
    return change;
  }
}
