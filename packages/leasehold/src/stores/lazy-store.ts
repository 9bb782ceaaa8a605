import type { Store, StoreAnswer, StoreCaller, StoreRequest, StoreTraits } from "../delta/store.js";
import { type ErrorCode, LeaseholdError } from "../lease/errors.js";
import type { Timer, Timers } from "../common/ports.js";
import { publish } from "../runtime/store-operations.js";
import type { OpenedStore } from "./common/contract.js";

/** The properties of a store that are known before it is opened. */
export type AssumedTraits = Pick<StoreTraits, "name" | "kind" | "bytesMax" | "pollMs" | "delayMs">;

/**
 * The minimum pause after a failure before the next attempt to open the store, ms: about the duration of an
 * operation.
 */
const againMs = 1_000;

/** Timeout for closing a store, ms: more than a responsive one needs. */
const closeMsMax = 500;

/** Errors in the address or the options. A retry is useless, and the whole farm is refused. */
const refusals: ReadonlySet<ErrorCode> = new Set([
  "INVALID_URL",
  "INVALID_CONFIG",
  "UNSUPPORTED",
  "STORE_UNFIT",
]);

/**
 * A store that may be unreachable when its farm is opened. Until it is open, every operation fails, so that
 * the farm can work with its other stores, and also tries again to open it.
 */
export class LazyStore implements Store {
  readonly traits: StoreTraits;
  readonly #open: (signal: AbortSignal) => Promise<OpenedStore>;
  readonly #timers: Timers;
  readonly #closing = new AbortController();
  #opened: OpenedStore | undefined;
  #opening: Promise<void> | undefined;
  #error: LeaseholdError;
  #isResting = false;

  constructor(assumed: AssumedTraits, timers: Timers, open: (signal: AbortSignal) => Promise<OpenedStore>) {
    this.#open = open;
    this.#timers = timers;
    this.#error = this.#unavailable(assumed.name, "it has not been reached yet");
    this.traits = new LazyTraits(assumed, () => this.#opened);
    this.#tryToOpen();
  }

  /**
   * Settles with the first attempt to open the store. Rejects if a retry is useless: `INVALID_URL`,
   * `INVALID_CONFIG`, `UNSUPPORTED`, `STORE_UNFIT`. Any other failure may be transient.
   */
  async settled(): Promise<void> {
    await this.#opening;
    if (this.#opened === undefined && refusals.has(this.#error.code)) throw this.#error;
  }

  perform(request: StoreRequest, caller?: StoreCaller): Promise<StoreAnswer> {
    if (this.#opened !== undefined) return this.#opened.perform(request, caller);
    this.#tryToOpen();
    return Promise.resolve({ kind: "failed", error: this.#error });
  }

  /**
   * Does not wait for a hanging store: the farm's other stores have to be closed, too, and the program must
   * not be blocked.
   */
  async close(): Promise<void> {
    this.#closing.abort(this.#unavailable(this.traits.name, "it has been closed"));
    if (this.#opened === undefined) return;
    let late: Timer | undefined;
    const given = new Promise<void>((resolve) => (late = this.#timers.after(closeMsMax, resolve)));
    await Promise.race([this.#opened.close(), given]).finally(() => late?.cancel());
  }

  #tryToOpen(): void {
    if (this.#opening !== undefined || this.#isResting || this.#closing.signal.aborted) return;
    this.#opening = this.#try().finally(() => (this.#opening = undefined));
  }

  async #try(): Promise<void> {
    const { signal } = this.#closing;
    const begunMs = performance.now();
    const probed = (outcome: string): void => {
      const tookMs = performance.now() - begunMs;
      publish({ kind: "probed", store: this.traits.name, operation: "", outcome, tookMs });
    };
    try {
      const store = await this.#open(signal);
      probed("ok");
      if (signal.aborted) await store.close();
      else this.#opened = store;
    } catch (error) {
      this.#error =
        error instanceof LeaseholdError ? error : this.#unavailable(this.traits.name, String(error));
      if (!signal.aborted) probed(this.#error.code);
      this.#isResting = true;
      this.#timers.after(againMs, () => (this.#isResting = false));
    }
  }

  #unavailable(name: string, why: string): LeaseholdError {
    return new LeaseholdError("STORE_UNAVAILABLE", `${name}: ${why}`);
  }
}

/** The assumed properties until the store is open, then its own. */
class LazyTraits implements StoreTraits {
  readonly #assumed: AssumedTraits;
  readonly #opened: () => OpenedStore | undefined;

  constructor(assumed: AssumedTraits, opened: () => OpenedStore | undefined) {
    this.#assumed = assumed;
    this.#opened = opened;
  }

  get name(): string {
    return this.#known.name;
  }

  get kind(): StoreTraits["kind"] {
    return this.#assumed.kind;
  }

  /** Unknown until the store has been reached. */
  get durable(): boolean {
    return this.#opened()?.traits.durable ?? false;
  }

  get bytesMax(): number {
    return this.#known.bytesMax;
  }

  get pollMs(): number {
    return this.#known.pollMs;
  }

  get delayMs(): number {
    return this.#known.delayMs;
  }

  get #known(): AssumedTraits {
    return this.#opened()?.traits ?? this.#assumed;
  }
}
