import type { Instance } from "leasehold/inner/flease/protocol/instance.js";
import type { FleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import type { Lease, Leases } from "leasehold/inner/lease/types.js";
import type { Provider } from "leasehold/inner/lease/provider.js";
import type { SharedWall } from "../../kit/clocks.js";
import type { SimEvent } from "../../kit/events.js";
import type { SimRandom } from "../../kit/random.js";
import type { FleaseCounters } from "./counters.js";
import type { Network, Packet } from "./network.js";
import type { RunPlan, WorkloadPlan } from "./plan.js";
import type { MachineNode, NodeView, ProgramNode } from "./node.js";
import type { Claim, ClaimLookup, Observers, Tenure, TenureLookup, Waiter, WorldView } from "./observer.js";

/** Mistakes of the host that can be planted only in the world. */
export interface WorldMistakes {
  /** P40: the clients share one incarnation. */
  readonly sharedIncarnation?: boolean;
  /** P41: every other node has cells of another size. */
  readonly mixedCells?: boolean;
  /** P47: members start even though their wall clock is far below a reading from an earlier life. */
  readonly earlyStart?: boolean;
  /** Puts something faulty between the waist and its provider. */
  readonly provider?: (provider: Provider) => Provider;
  /** Puts something faulty between the programs and the waist. */
  readonly leases?: (leases: Leases) => Leases;
}

/** The index of tenures, as the programs were told. */
export interface TenureIndex extends TenureLookup {
  begin(node: NodeView, instance: Instance): Tenure;
  end(node: NodeView, resource: string, how: "released" | "lapsed"): void;
  /** The node has died and lost everything that it held. */
  crash(node: NodeView): void;
}

/** The index of claims on the lease layer. */
export interface ClaimIndex extends ClaimLookup {
  waits(node: NodeView, resource: string): Waiter;
  waited(waiter: Waiter): void;
  begin(node: NodeView, lease: Lease, shared?: boolean): Claim;
  /** The program asks how long it still has the resource. */
  look(claim: Claim): number;
  /** The program does not use the resource any more. */
  end(claim: Claim): void;
  /** The node has died, and its programs with it. */
  crash(node: NodeView): void;
}

/** The world of peers, as its parts see it. */
export interface Stage extends WorldView {
  readonly plan: RunPlan;
  readonly workload: WorkloadPlan;
  readonly mistakes: WorldMistakes;
  readonly random: SimRandom;
  readonly counters: FleaseCounters;
  readonly story: ((line: string) => void) | undefined;
  readonly sharedWall: SharedWall;
  readonly network: Network;
  readonly nodes: readonly (MachineNode & ProgramNode)[];
  readonly tenures: TenureIndex;
  readonly claims: ClaimIndex;
  readonly observers: Observers;
  /** Some nodes have programs on the waist. */
  readonly hasWaist: boolean;
  /** The last fault is over. */
  readonly calm: boolean;
  at(timeMs: number, body: () => void, code?: number): void;
  schedule(event: SimEvent, delayMs: number): void;
  scheduleAt(event: SimEvent, dueMs: number): void;
  cancel(event: SimEvent): void;
  /** A promise of this node may continue when the present event is over. */
  stir(node: NodeView): void;
  /**
   * Simulates async functions of programs or providers between two calls: a few turns in which others can
   * run.
   */
  pass(turnsMax: number): Promise<void>;
  /** A program has failed in a way that is not allowed: the run ends. */
  fail(error: unknown): void;
  /** A client has exited cleanly. */
  left(node: NodeView): void;
  settingsOf(node: NodeView): FleaseSettings;
  readonly arrive: (packet: Packet) => void;
  /** The delay of a timer, ms. */
  drawLateMs(): number;
  /** The name under which a node's proposer works. */
  ownerFor(node: NodeView, owner: string): string;
  /** Shows the observers the holds of the resources that an event may have affected. */
  look(resource: string | undefined, actor: NodeView | undefined): void;
}
