import type { Change, HolderHint, LeaderObserver } from "./types.js";

interface Reader {
  readonly resolve: (result: IteratorResult<Change, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Follows the changes of one name, whether anybody reads them or not. What was not read in time is replaced
 * by what is newer.
 */
export class LeaderWatch implements LeaderObserver {
  readonly #changes: AsyncIterableIterator<Change, undefined>;
  readonly #readers: Reader[] = [];
  #current: Change | undefined;
  #unread: Change | undefined;
  #hasEnded = false;
  #error: unknown;

  /** @param asked who holds the name now: a watch tells of nothing as long as nobody does. */
  constructor(
    resource: string,
    changes: AsyncIterableIterator<Change, undefined>,
    asked: Promise<HolderHint>,
  ) {
    this.#changes = changes;
    const isFree = ({ state }: HolderHint) => {
      if (state === "free" && this.#current === undefined) this.#tell({ resource, state });
    };
    // When nobody can say, the watch will, later.
    asked.then(isFree, () => undefined);
    void this.#follow();
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
      this.#serve();
    });
  }

  /** The reader wants no more. */
  async return(): Promise<IteratorResult<Change, undefined>> {
    this.#end();
    await this.#changes.return?.();
    return { done: true, value: undefined };
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
    this.#current = change;
    this.#unread = change;
    this.#serve();
  }

  #end(): void {
    this.#hasEnded = true;
    this.#current = undefined;
    this.#unread = undefined;
    this.#serve();
  }

  #serve(): void {
    while (this.#readers.length > 0 && (this.#unread !== undefined || this.#hasEnded)) {
      const reader = this.#readers.shift()!;
      const [value, error] = [this.#unread, this.#error];
      this.#unread = undefined;
      this.#error = undefined;
      if (value !== undefined) reader.resolve({ done: false, value });
      else if (error !== undefined) reader.reject(error);
      else reader.resolve({ done: true, value: undefined });
    }
  }
}
