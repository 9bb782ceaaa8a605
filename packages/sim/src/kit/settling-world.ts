import type { Counters } from "./counters.js";
import type { SimEvent } from "./events.js";
import { SimWorld } from "./world.js";

/**
 * Turns of promises without a call to the world after which all have settled: drivers and programs need fewer
 * from one call to the next.
 */
const quietTurns = 10;

const noTime = Promise.resolve();

/** A world in which drivers and programs wait for promises. */
export class SettlingWorld<Invariant extends string, Counts extends Counters> extends SimWorld<
  Invariant,
  Counts
> {
  #stirs = 0;
  #failure: { readonly error: unknown } | undefined;

  /** A process continues: its promises have to settle before time passes. */
  stir(): void {
    this.#stirs += 1;
  }

  /** A program has failed with an error that none may fail with: the run ends. */
  fail(error: unknown): void {
    this.#failure ??= { error };
  }

  /** Runs until `endMs`, or until a violation. Before each event, when all promises have settled, it calls `look`. */
  protected async settleUntil(endMs: number, look: () => void = () => undefined): Promise<void> {
    let stirs = -1;
    for (;;) {
      if (stirs !== this.#stirs) await this.#settle();
      stirs = this.#stirs;
      look();
      const event = this.next(endMs);
      if (event === undefined) return;
      this.happen(event);
    }
  }

  /** Runs one event. A world that does more with each event overrides it. */
  protected happen(event: SimEvent): void {
    event.run();
  }

  /** Time stands still until all promises have settled, so a seed decides what drivers and programs do. */
  async #settle(): Promise<void> {
    let stirs = this.#stirs;
    for (let quiet = 0; quiet <= quietTurns;) {
      await noTime;
      quiet = stirs === this.#stirs ? quiet + 1 : 0;
      stirs = this.#stirs;
    }
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}
