import type { Watching } from "./provider.js";
import type { ResourceHint } from "./types.js";

/**
 * What one watch of a prefix has told. A list of all that is held tells of each resource in it, and that
 * those are free which were told to be held and are not in the list. After `stop` nothing is told.
 */
export class PrefixView implements Watching {
  readonly #told: (hint: ResourceHint) => void;
  readonly #held = new Set<string>();
  #isStopped = false;

  constructor(told: (hint: ResourceHint) => void) {
    this.#told = told;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** All that is held below the prefix now. */
  list(hints: readonly ResourceHint[]): void {
    const held = new Set(hints.map(({ resource }) => resource));
    for (const resource of this.#held) if (!held.has(resource)) this.free(resource);
    for (const hint of hints) this.held(hint);
  }

  held(hint: ResourceHint): void {
    if (this.#isStopped) return;
    this.#held.add(hint.resource);
    this.#told(hint);
  }

  free(resource: string): void {
    if (this.#isStopped) return;
    this.#held.delete(resource);
    this.#told({ resource, state: "free" });
  }

  stop(): void {
    this.#isStopped = true;
  }
}
