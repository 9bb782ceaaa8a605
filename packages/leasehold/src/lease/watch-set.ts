import type { Watching } from "./provider.js";

/**
 * Resources that one watch can follow: about 50 megabytes. For more, open several watches with longer
 * prefixes.
 */
export const watchedMax = 100_000;

/**
 * The open watches of one participant: a watch leaves the set when it is stopped, and closing the set stops
 * all.
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
