import type { FleaseSettings } from "../protocol/settings.js";
import type { PublishedView } from "./document.js";
import type { ViewAndBarrier } from "./view.js";

/** The cluster as a participant knows it. */
export interface Cluster {
  readonly name: string;
  readonly settings: FleaseSettings;
  /** 16 bytes in hexadecimal: a hash of all settings that must be equal on every participant. */
  readonly configHash: string;
  /** Addresses in the order of `settings.members`. */
  readonly addresses: readonly string[];
  /** Number of founding members: the first in these lists. */
  readonly foundedBy: number;
  /** The view of the member that described the cluster; absent in a participant's own settings. */
  readonly current?: (ViewAndBarrier & Pick<PublishedView, "addresses">) | undefined;
  /**
   * Adds a member, or a new address of one, to the lists of all members ever known. Indices never change.
   * False when the lists are full.
   */
  learn(id: string, address: string): boolean;
}
