import { memberIdsMax } from "../protocol/settings.js";
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
   * One that is to be added knows the members that the cluster began with, and these may all have gone. So as
   * long as its own view does not name it, and it has no vote, any member of the cluster may tell it the
   * view.
   */
  mayCome(stranger: string, hasVote: boolean): boolean {
    return !hasVote && (this.#strangers.has(stranger) || this.#strangers.size < memberIdsMax);
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

  /** Gives up members that are known by now, and closes those that are not as soon as we have a vote. */
  *placed(members: readonly string[], hasVote: boolean): Generator<Link> {
    for (const link of this.#byHandle.values()) {
      if (link.role !== "member") continue;
      if (members.includes(link.peerId)) {
        this.#byHandle.delete(link.handle);
        yield link;
      } else if (hasVote) link.close("no member of this cluster");
    }
  }
}
