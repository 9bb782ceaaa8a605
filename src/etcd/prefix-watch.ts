import { LeaseholdError } from "../lease/errors.js";
import type { Timer, Timers } from "../lease/ports.js";
import type { Watching } from "../lease/provider.js";
import type { ResourceHint } from "../lease/types.js";
import type { Core } from "./core.js";
import { hintOf } from "./hints.js";
import type { Keys } from "./keys.js";

/** How long one look at all that is held may take. */
const listMsMax = 30_000;

/** The pause after a look that failed. */
const retryMs = 1_000;

export interface PrefixWatchParts {
  readonly core: Core;
  readonly timers: Timers;
  readonly keys: Keys;
}

/** One watch of what is held below a prefix: a look at all of it, then each change from the revision of that look on. */
export class PrefixWatch implements Watching {
  readonly #parts: PrefixWatchParts;
  readonly #prefix: string;
  readonly #told: (hint: ResourceHint) => void;
  /** What was told to be held. */
  readonly #held = new Set<string>();
  #watching: Watching | undefined;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(parts: PrefixWatchParts, prefix: string, told: (hint: ResourceHint) => void) {
    this.#parts = parts;
    this.#prefix = prefix;
    this.#told = told;
    this.#lookIn(0);
  }

  stop(): void {
    this.#isStopped = true;
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
      if (this.#isStopped) return;
      const now = new Set(entries.map((entry) => keys.resourceOf(entry.key)));
      for (const resource of this.#held) if (!now.has(resource)) this.#free(resource);
      for (const entry of entries) this.#isHeld(keys.resourceOf(entry.key), hintOf(entry));
      if (this.#isStopped) return;
      this.#watching = core.watch({ key, isPrefix: true }, revision + 1n, {
        written: (entry) => this.#isHeld(keys.resourceOf(entry.key), hintOf(entry)),
        deleted: (gone) => this.#free(keys.resourceOf(gone)),
        missed: () => this.#lookIn(0),
      });
    } catch (error) {
      // Nothing is told meanwhile, and the next look may see more.
      if (!(error instanceof LeaseholdError)) throw error;
      if (!this.#isStopped) this.#lookIn(retryMs);
    }
  }

  #isHeld(resource: string, hint: ReturnType<typeof hintOf>): void {
    if (this.#isStopped) return;
    this.#held.add(resource);
    this.#told({ resource, ...hint });
  }

  #free(resource: string): void {
    if (this.#isStopped) return;
    this.#held.delete(resource);
    this.#told({ resource, state: "free" });
  }
}
