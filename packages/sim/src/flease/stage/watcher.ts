import type { SimEvent } from "../../kit/events.js";
import type { SharedWall } from "../../kit/clocks.js";
import type { Network, Packet } from "./network.js";
import type { Observer, WorldView } from "./observer.js";
import type { RunPlan } from "./plan.js";

/** A world, as a watcher sees it. */
export interface WatchedWorld extends WorldView {
  readonly plan: RunPlan;
  readonly network: Pick<Network, "isCut">;
  readonly sharedWall: Readonly<SharedWall>;
}

/** Watches a run event by event and message by message, in order to display it. It changes nothing. */
export interface Watcher extends Observer {
  /** The world is built, and nothing has happened. */
  begins(world: WatchedWorld): void;
  /** A message is on its way. It arrives unless its receiver dies or is stopped. */
  departed(packet: Packet, arrivesMs: number): void;
  /** The network has lost a message that was just sent. */
  lost(packet: Packet): void;
  /** An event is over. Promises that it has resolved continue later, at the same time. */
  happened(event: SimEvent): void;
}
