import { labelBytesMax } from "../../runtime/participant.js";
import type { Link } from "./transport/link.js";

/** A label is shown as long as a lease of its owner can be, and a while longer. */
export const labelKeepLeases = 2;

/** Labels that a member keeps: more than there may be clients, and some megabytes. */
const LABELS_MAX = 20_000;

interface Labelled {
  readonly link: Link;
  readonly label: string;
  /** When its connection was lost, on the steady clock. */
  goneMs: number;
}

/**
 * What participants say of themselves, by owner. They say it once, when they connect, so it costs nothing
 * when leases are taken. Nothing rests on it.
 */
export class Labels {
  readonly #keepMs: number;
  readonly #byOwner = new Map<string, Labelled>();

  /** A lease outlives the connection of its owner by `keepMs` at most. */
  constructor(keepMs: number) {
    this.#keepMs = keepMs;
  }

  set(link: Link, label: unknown): boolean {
    if (typeof label !== "string" || Buffer.byteLength(label) > labelBytesMax) return false;
    if (/\p{Cc}/u.test(label)) return false;
    if (this.#byOwner.size >= LABELS_MAX && !this.#byOwner.has(link.owner)) return false;
    this.#byOwner.set(link.owner, { link, label, goneMs: Infinity });
    return true;
  }

  of(owner: string): string | undefined {
    return this.#byOwner.get(owner)?.label;
  }

  gone(link: Link, nowMs: number): void {
    const labelled = this.#byOwner.get(link.owner);
    if (labelled?.link === link) labelled.goneMs = nowMs;
  }

  /** Forgets those that have been gone for long. */
  sweep(nowMs: number): void {
    for (const [owner, { goneMs }] of this.#byOwner)
      if (nowMs - goneMs > this.#keepMs) this.#byOwner.delete(owner);
  }
}
