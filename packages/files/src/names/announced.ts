import { LeaseholdError } from "leasehold/common";

/** The most announcements at a time. */
const announcedMax = 100_000;

/**
 * Contents that uploads have announced to this primary of names. Only these may be named, each once. A node
 * may collect a content that has neither a name nor an announcement: since announcements end with the
 * primary's tenure, no change in flight can name it.
 */
export class Announced {
  readonly #all = new Map<string, { readonly endMs: number; readonly nodes: readonly string[] }>();
  readonly #nowMs: () => number;
  readonly #lastsMs: number;

  constructor(nowMs: () => number, lastsMs: number) {
    this.#nowMs = nowMs;
    this.#lastsMs = lastsMs;
  }

  has(content: string): boolean {
    return this.nodesOf(content) !== undefined;
  }

  /** The nodes for which the content was announced. */
  nodesOf(content: string): readonly string[] | undefined {
    const announced = this.#all.get(content);
    return announced !== undefined && announced.endMs > this.#nowMs() ? announced.nodes : undefined;
  }

  /** @throws LeaseholdError `OVERLOADED` */
  add(content: string, nodes: readonly string[]): void {
    const nowMs = this.#nowMs();
    for (const [oldest, { endMs }] of this.#all) {
      if (endMs > nowMs) break;
      this.#all.delete(oldest);
    }
    this.#all.delete(content);
    if (this.#all.size >= announcedMax) throw new LeaseholdError("OVERLOADED", "too many uploads at once");
    this.#all.set(content, { endMs: nowMs + this.#lastsMs, nodes });
  }

  remove(content: string): void {
    this.#all.delete(content);
  }
}
