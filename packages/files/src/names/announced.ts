import { LeaseholdError } from "leasehold/common";

/** Announcements at once. */
const announcedMax = 100_000;

/**
 * Contents that uploads have announced to this primary of names. Only these may be named, each once. A node
 * may collect a content that has neither a name nor an announcement: no change that is on its way can name
 * it, as announcements end with the primary's tenure.
 */
export class Announced {
  readonly #endsMs = new Map<string, number>();
  readonly #nowMs: () => number;
  readonly #lastsMs: number;

  constructor(nowMs: () => number, lastsMs: number) {
    this.#nowMs = nowMs;
    this.#lastsMs = lastsMs;
  }

  has(content: string): boolean {
    return (this.#endsMs.get(content) ?? -Infinity) > this.#nowMs();
  }

  /** @throws LeaseholdError `OVERLOADED` */
  add(content: string): void {
    const nowMs = this.#nowMs();
    for (const [oldest, endMs] of this.#endsMs) {
      if (endMs > nowMs) break;
      this.#endsMs.delete(oldest);
    }
    this.#endsMs.delete(content);
    if (this.#endsMs.size >= announcedMax) throw new LeaseholdError("OVERLOADED", "too many uploads at once");
    this.#endsMs.set(content, nowMs + this.#lastsMs);
  }

  remove(content: string): void {
    this.#endsMs.delete(content);
  }
}
