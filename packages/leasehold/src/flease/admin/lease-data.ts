import { dataBytesMax } from "../../lease/tenure-data.js";
import type { Acceptor } from "../protocol/acceptor.js";

/** Upper bounds of stored data per member, and per owner: enough for about 16,000 and 4,000 leases. */
const bytesMax = 16 * 1_024 * 1_024;
const ownerBytesMax = bytesMax / 4;

const encoder = new TextEncoder();

/** Data stored alongside a lease. */
interface Kept {
  readonly owner: string;
  readonly token: number;
  readonly text: string;
  readonly bytes: number;
}

/**
 * Owners' public data of their leases, as sent to this member: outside the protocol, and bound to the
 * tenure that the acceptor keeps. The content is not validated.
 */
export class LeaseData {
  readonly #acceptor: Acceptor;
  readonly #kept = new Map<string, Kept>();
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;

  constructor(acceptor: Acceptor) {
    this.#acceptor = acceptor;
  }

  /**
   * Returns whether it is stored: the text is within its bound, and the acceptor keeps that owner's tenure.
   */
  set(owner: string, resource: string, token: number, text: unknown): boolean {
    if (typeof text !== "string" || text.length > dataBytesMax) return false;
    const bytes = encoder.encode(text).length;
    if (bytes > dataBytesMax || !this.#isStanding(resource, owner, token)) return false;
    this.#drop(resource);
    const ownerBytes = (this.#bytesOf.get(owner) ?? 0) + bytes;
    if (this.#bytes + bytes > bytesMax || ownerBytes > ownerBytesMax) return false;
    this.#kept.set(resource, { owner, token, text, bytes });
    this.#bytesOf.set(owner, ownerBytes);
    this.#bytes += bytes;
    return true;
  }

  /** This owner's data for this tenure. */
  of(resource: string, owner: string, token: number): string | undefined {
    const kept = this.#kept.get(resource);
    return kept?.owner === owner && kept.token === token ? kept.text : undefined;
  }

  /** Drops data of tenures that the acceptor no longer keeps. */
  sweep(): void {
    for (const [resource, { owner, token }] of this.#kept)
      if (!this.#isStanding(resource, owner, token)) this.#drop(resource);
  }

  #isStanding(resource: string, owner: string, token: number): boolean {
    const entry = this.#acceptor.entry(resource);
    return entry?.leaseOwner === owner && entry.token === token && !entry.released;
  }

  #drop(resource: string): void {
    const kept = this.#kept.get(resource);
    if (kept === undefined) return;
    const { owner, bytes } = kept;
    this.#kept.delete(resource);
    this.#bytes -= bytes;
    const left = this.#bytesOf.get(owner)! - bytes;
    if (left > 0) this.#bytesOf.set(owner, left);
    else this.#bytesOf.delete(owner);
  }
}
