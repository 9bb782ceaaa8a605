import { memberIdsMax } from "../protocol/settings.js";
import type { Role } from "../../runtime/security/roles.js";
import type { Link } from "./transport/link.js";

/** Handles below are indices of members; other peers have numbers from here on. */
export const firstClientHandle = memberIdsMax;

/**
 * Links to clients, and to members that this participant does not know yet. Their handles are numbers of
 * their own.
 */
export class UnplacedLinks {
  readonly #byHandle = new Map<number, Link>();
  #nextHandle = firstClientHandle;
  /** Ids of unknown members that were admitted: no more than a cluster has in its lifetime. */
  readonly #strangers = new Set<string>();

  /**
   * Whether an unknown peer is admitted. A member admits every member of its cluster, to learn of views newer
   * than its own: all members that it knows may have gone. An unknown member has no vote here.
   */
  mayCome(stranger: string, role: Role): boolean {
    return role === "member" && (this.#strangers.has(stranger) || this.#strangers.size < memberIdsMax);
  }

  add(link: Link): void {
    if (link.role === "member") this.#strangers.add(link.peerId);
    link.handle = this.#nextHandle;
    this.#nextHandle += 1;
    this.#byHandle.set(link.handle, link);
  }

  get(handle: number): Link | undefined {
    return this.#byHandle.get(handle);
  }

  delete(handle: number): boolean {
    return this.#byHandle.delete(handle);
  }

  clear(): void {
    this.#byHandle.clear();
  }

  /** Yields and drops links of members that have become known. */
  *placed(members: readonly string[]): Generator<Link> {
    for (const link of this.#byHandle.values()) {
      if (link.role !== "member" || !members.includes(link.peerId)) continue;
      this.#byHandle.delete(link.handle);
      yield link;
    }
  }
}
