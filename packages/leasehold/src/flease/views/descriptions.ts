import { majorityOf } from "../../common/majority.js";
import { getOrInsert } from "../../common/maps.js";
import type { Cluster } from "./cluster.js";
import { firstView, votersOf } from "./view.js";
import type { View } from "./view.js";

/**
 * Descriptions of the cluster from members with equal settings. Their views may differ after a change: a
 * member that was cut off, or has lost its file, describes an older view. Views never go back, so the highest
 * number wins; if two have the same number, the one reported by more members.
 */
export class Descriptions {
  readonly addresses = new Map<string, string>();
  /** By stamp: the view's number, and the members that report it. */
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

  /**
   * Whether a majority of the view's members, and of those asked, is in this view, so that there is no need
   * to wait for the rest.
   */
  isSettled(asked: number): boolean {
    const { view, saidBy } = this.#newest;
    const voters = votersOf(view);
    const counted = voters.filter((id) => saidBy.has(id)).length;
    return counted >= majorityOf(voters.length) && counted >= majorityOf(asked);
  }
}
