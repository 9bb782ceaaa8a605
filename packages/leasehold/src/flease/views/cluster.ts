import type { FleaseSettings } from "../protocol/settings.js";
import type { ToldView } from "./document.js";
import type { ViewAndBarrier } from "./view.js";

/** All that a participant has to know of its cluster. */
export interface Cluster {
  readonly name: string;
  readonly settings: FleaseSettings;
  /** 16 bytes in hexadecimal, over everything that must be alike everywhere. */
  readonly configHash: string;
  /** Of each member, in the order of `settings.members`. */
  readonly addresses: readonly string[];
  /** How many members the cluster began with: the first in these lists. */
  readonly foundedBy: number;
  /** The view that the member was in which described the cluster; absent in one's own settings. */
  readonly current?: (ViewAndBarrier & Pick<ToldView, "addresses">) | undefined;
  /**
   * Takes another member, or another address of one, into the lists of all that ever were members. No index
   * changes. False when there is no place left.
   */
  learn(id: string, address: string): boolean;
}
