import { LeaseholdError } from "../lease/errors.js";
import type { Timer, Timers } from "../common/ports.js";
import { PrefixView } from "../lease/prefix-view.js";
import type { Watching } from "../lease/provider.js";
import type { ResourceHint } from "../lease/types.js";
import type { CoreClient, Entry } from "./core-client.js";
import { hintOf } from "./hints.js";
import type { Keys } from "./keys.js";

/** Time limit of one listing, ms. */
const listMsMax = 30_000;

/** The pause after a failed listing, ms. */
const retryMs = 1_000;

export interface PrefixWatchParts {
  readonly core: CoreClient;
  readonly timers: Timers;
  readonly keys: Keys;
}

/** Watches the leases below a prefix: a listing, followed by each change from that listing's revision on. */
export class PrefixWatch implements Watching {
  readonly #parts: PrefixWatchParts;
  readonly #prefix: string;
  readonly #view: PrefixView;
  #watching: Watching | undefined;
  #timer: Timer | undefined;

  constructor(parts: PrefixWatchParts, prefix: string, told: (hint: ResourceHint) => void) {
    this.#parts = parts;
    this.#prefix = prefix;
    this.#view = new PrefixView(told);
    this.#lookIn(0);
  }

  stop(): void {
    this.#view.stop();
    this.#watching?.stop();
    this.#timer?.cancel();
  }

  #lookIn(delayMs: number): void {
    this.#watching?.stop();
    this.#watching = undefined;
    this.#timer?.cancel();
    this.#timer = this.#parts.timers.after(delayMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { core, keys } = this.#parts;
    const key = keys.of(this.#prefix);
    try {
      const { entries, revision } = await core.list(key, { timeoutMs: listMsMax });
      this.#view.list(entries.map((entry) => this.#hintOf(entry)));
      if (this.#view.isStopped) return;
      this.#watching = core.watch({ key, isPrefix: true }, revision + 1n, {
        written: (entry) => this.#view.held(this.#hintOf(entry)),
        deleted: (gone) => this.#view.free(keys.resourceOf(gone)),
        missed: () => this.#lookIn(0),
      });
    } catch (error) {
      // The listener misses nothing: the next listing includes it.
      if (!(error instanceof LeaseholdError)) throw error;
      if (!this.#view.isStopped) this.#lookIn(retryMs);
    }
  }

  #hintOf(entry: Entry): ResourceHint {
    return { resource: this.#parts.keys.resourceOf(entry.key), ...hintOf(entry) };
  }
}
