import { majorityOf } from "../../common/majority.js";
import { getOrInsert } from "../../common/maps.js";
import type { Cluster } from "./cluster.js";
import { firstView, votersOf } from "./view.js";
import type { View } from "./view.js";

/**
 * What members with the same settings say. They differ in the view when the members have changed: a member
 * that was cut off, or has lost what it kept, describes an older one. As views never go back, the highest
 * that any of them is in counts; of two with one number what more of them say.
 */
export class Descriptions {
  readonly addresses = new Map<string, string>();
  /** By stamp: the view's number, and who is in it. */
  readonly #views = new Map<number, { cluster: Cluster; view: View; saidBy: Set<string> }>();

  add(cluster: Cluster, member: string, address: string): void {
    this.addresses.set(member, address);
    const view = cluster.current?.view ?? firstView(cluster.settings);
    for (const { saidBy } of this.#views.values()) saidBy.delete(member);
    getOrInsert(this.#views, view.stamp, () => ({ cluster, view, saidBy: new Set() })).saidBy.add(member);
  }

  get #newest() {
    const newestFirst = [...this.#views.values()].sort(
      (one, other) => other.view.number - one.view.number || other.saidBy.size - one.saidBy.size,
    );
    return newestFirst[0]!;
  }

  get cluster(): Cluster {
    return this.#newest.cluster;
  }

  /** Nobody is waited for: a majority of the members is in this view, and of those that are asked. */
  isSettled(asked: number): boolean {
    const { view, saidBy } = this.#newest;
    const voters = votersOf(view);
    const counted = voters.filter((id) => saidBy.has(id)).length;
    return counted >= majorityOf(voters.length) && counted >= majorityOf(asked);
  }
}
