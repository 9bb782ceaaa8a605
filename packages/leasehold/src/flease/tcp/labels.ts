import { labelBytesMax } from "../../runtime/participant.js";
import type { Link } from "./transport/link.js";

/** Labels outlive the leases of their owner by this factor. */
export const labelKeepLeases = 2;

/** Upper bound of labels kept by a member: more than the bound of clients, a few megabytes. */
const LABELS_MAX = 20_000;

interface Labelled {
  readonly link: Link;
  readonly label: string;
  /** When its connection was lost, on the steady clock. */
  goneMs: number;
}

/**
 * Labels of participants, by owner. A participant sends its label once, when it connects, so labels cost
 * nothing when leases are acquired. Safety does not depend on them.
 */
export class Labels {
  readonly #keepMs: number;
  readonly #byOwner = new Map<string, Labelled>();

  /** @param keepMs upper bound of a lease's life after its owner's connection */
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

  /** Forgets labels whose owners disconnected long ago. */
  sweep(nowMs: number): void {
    for (const [owner, { goneMs }] of this.#byOwner)
      if (nowMs - goneMs > this.#keepMs) this.#byOwner.delete(owner);
  }
}
