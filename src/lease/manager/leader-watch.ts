import type { Timer, World } from "../../common/ports.js";
import type { Change, HolderHint, LeaderObserver } from "../types.js";

/** As long as nobody can say who leads, one asks again after so long. */
const askAgainMs = 1_000;

interface Reader {
  readonly resolve: (result: IteratorResult<Change, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Follows the changes of one name, whether anybody reads them or not. What was not read in time is replaced
 * by what is newer.
 */
export class LeaderWatch implements LeaderObserver {
  readonly #resource: string;
  readonly #changes: AsyncIterableIterator<Change, undefined>;
  readonly #ask: () => Promise<HolderHint>;
  readonly #world: Pick<World, "timers" | "keepAlive">;
  readonly #readers: Reader[] = [];
  #current: Change | undefined;
  #unread: Change | undefined;
  #again: Timer | undefined;
  #hasEnded = false;
  #error: unknown;

  /**
   * @param changes is read from now on: it must not keep a process alive
   * @param ask who holds the name now: a watch tells of nothing as long as nobody does
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
    this.#world = world;
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
    return new Promise((resolve, reject) => {
      this.#readers.push({ resolve, reject });
      this.#world.keepAlive?.ref();
      this.#serve();
    });
  }

  /** The reader wants no more. */
  async return(): Promise<IteratorResult<Change, undefined>> {
    this.#end();
    await this.#changes.return?.();
    return { done: true, value: undefined };
  }

  /** Until something is known. */
  async #begin(): Promise<void> {
    const state = await this.#ask().then(
      (hint) => hint.state,
      () => "unknown",
    );
    if (this.#hasEnded || this.#current !== undefined) return;
    if (state === "free") this.#tell({ resource: this.#resource, state });
    else this.#again = this.#world.timers.after(askAgainMs, () => void this.#begin());
  }

  async #follow(): Promise<void> {
    try {
      for await (const change of this.#changes) this.#tell(change);
    } catch (error) {
      this.#error = error;
    }
    this.#end();
  }

  #tell(change: Change): void {
    if (this.#hasEnded) return;
    this.#again?.cancel();
    this.#current = change;
    this.#unread = change;
    this.#serve();
  }

  #end(): void {
    this.#hasEnded = true;
    this.#again?.cancel();
    this.#current = undefined;
    this.#unread = undefined;
    this.#serve();
  }

  #serve(): void {
    while (this.#readers.length > 0 && (this.#unread !== undefined || this.#hasEnded)) {
      const reader = this.#readers.shift()!;
      this.#world.keepAlive?.unref();
      const [value, error] = [this.#unread, this.#error];
      this.#unread = undefined;
      this.#error = undefined;
      if (value !== undefined) reader.resolve({ done: false, value });
      else if (error !== undefined) reader.reject(error);
      else reader.resolve({ done: true, value: undefined });
    }
  }
}
