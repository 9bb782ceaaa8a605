import type { Watching } from "./provider.js";
import type { ResourceHint } from "./types.js";

/**
 * The state that a watch of a prefix has reported. A full list reports every resource in it, and those
 * reported as held before but now missing as free. After `stop` nothing is reported.
 */
export class PrefixView implements Watching {
  readonly #report: (hint: ResourceHint) => void;
  readonly #held = new Set<string>();
  #isStopped = false;

  constructor(report: (hint: ResourceHint) => void) {
    this.#report = report;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** All resources that are now held below the prefix. */
  list(hints: readonly ResourceHint[]): void {
    const held = new Set(hints.map(({ resource }) => resource));
    for (const resource of this.#held) if (!held.has(resource)) this.free(resource);
    for (const hint of hints) this.held(hint);
  }

  held(hint: ResourceHint): void {
    if (this.#isStopped) return;
    this.#held.add(hint.resource);
    this.#report(hint);
  }

  free(resource: string): void {
    if (this.#isStopped) return;
    this.#held.delete(resource);
    this.#report({ resource, state: "free" });
  }

  stop(): void {
    this.#isStopped = true;
  }
}
