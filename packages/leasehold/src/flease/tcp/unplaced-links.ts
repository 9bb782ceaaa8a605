import { memberIdsMax } from "../protocol/settings.js";
import type { Role } from "../../runtime/security/roles.js";
import type { Link } from "./transport/link.js";

/** Members are known by their index, all others by numbers from here on. */
export const firstClientHandle = memberIdsMax;

/** Links to clients, and to members that this participant does not know yet, by numbers of their own. */
export class UnplacedLinks {
  readonly #byHandle = new Map<number, Link>();
  #nextHandle = firstClientHandle;
  /** Ids of members that were let in unknown: no more than a cluster has in its time. */
  readonly #strangers = new Set<string>();

  /**
   * A member lets in every member of its cluster, to be told of a view that is newer than its own: those that
   * it knows may all have gone. One that it does not know has no vote for it.
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

  /** Gives up members that are known by now. */
  *placed(members: readonly string[]): Generator<Link> {
    for (const link of this.#byHandle.values()) {
      if (link.role !== "member" || !members.includes(link.peerId)) continue;
      this.#byHandle.delete(link.handle);
      yield link;
    }
  }
}
