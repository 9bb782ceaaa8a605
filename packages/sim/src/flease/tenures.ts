import type { Instance } from "leasehold/inner/flease/protocol/instance.js";
import type { Tenure, TenureLookup } from "./stage/observer.js";
import type { NodeView } from "./stage/node.js";
import type { Stage } from "./stage/stage.js";

/** The index of tenures, as reported to programs. */
export class Tenures implements TenureLookup {
  readonly #world: Stage;
  readonly #present: Map<string, Tenure>[];
  readonly #last = new Map<string, Tenure>();

  constructor(world: Stage, nodes: number) {
    this.#world = world;
    this.#present = Array.from({ length: nodes }, () => new Map<string, Tenure>());
  }

  of(node: NodeView, resource: string): Tenure | undefined {
    return this.#present[node.index]!.get(resource);
  }

  begin(node: NodeView, instance: Instance): Tenure {
    const world = this.#world;
    const { resource, tokenNumber: token } = instance;
    const tenure: Tenure = {
      node,
      owner: node.owner,
      resource,
      token,
      beganMs: world.nowMs,
      fast: world.writes.find(node.owner, token, 0)?.fast === true,
      ended: undefined,
      endedMs: 0,
      until: instance.holdExpiresWallMs,
    };
    world.story?.(`${node.name} HOLDS ${resource}, token ${token}, until ${instance.holdExpiresWallMs}`);
    const earlier = this.#last.get(resource);
    this.#last.set(resource, tenure);
    this.#present[node.index]!.set(resource, tenure);
    for (const tenureBegan of world.observers.tenureBegan) tenureBegan(tenure, earlier);
    return tenure;
  }

  end(node: NodeView, resource: string, how: "released" | "lapsed"): void {
    const world = this.#world;
    const tenure = this.#present[node.index]!.get(resource);
    if (tenure !== undefined && tenure.ended === undefined) {
      tenure.ended = how;
      tenure.endedMs = world.nowMs;
      tenure.until = node.peer?.proposer.instanceOf(resource)?.holdExpiresWallMs ?? tenure.until;
      world.story?.(`${node.name} ${how} ${resource}, token ${tenure.token}`);
    }
    if (how === "released") for (const closed of world.observers.closed) closed(node, resource);
  }

  /** The node has died, and with it all that it held. */
  crash(node: NodeView): void {
    const present = this.#present[node.index]!;
    for (const tenure of present.values()) {
      if (tenure.ended !== undefined) continue;
      tenure.ended = "crashed";
      tenure.endedMs = this.#world.nowMs;
    }
    present.clear();
  }

  /** Whether every resource has begun a tenure since `sinceMs`; the first that has not. */
  idleSince(sinceMs: number, resources: readonly string[]): string | undefined {
    return resources.find((resource) => (this.#last.get(resource)?.beganMs ?? -1) < sinceMs);
  }
}
