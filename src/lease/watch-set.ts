import type { Watching } from "./provider.js";

/**
 * The open watches of one participant: each leaves the set when it is stopped, and closing the set stops all.
 */
export class WatchSet {
  readonly #open = new Set<Watching>();

  add(watch: Watching): Watching {
    this.#open.add(watch);
    return {
      stop: () => {
        this.#open.delete(watch);
        watch.stop();
      },
    };
  }

  close(): void {
    for (const watch of this.#open) watch.stop();
    this.#open.clear();
  }
}
