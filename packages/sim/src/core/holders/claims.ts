import { greatest } from "leasehold/inner/common/lists.js";
import type { CoreForm } from "../world/plan.js";
import type { CoreWorld } from "../world/world.js";

/** How a program holds a name; for shared leases as a reader or a writer. */
export type Hold = Exclude<CoreForm, "shared"> | "reader" | "writer";

/** A hold, as its program sees it. */
export interface Claim {
  readonly process: string;
  readonly resource: string;
  readonly hold: Hold;
  readonly token: bigint;
  readonly slot: number;
  /** The limit of a counted lease, as its caller gave it. */
  readonly limit: number;
  /** As of its last look, by the process's present clocks. */
  remainingMs(): number;
}

/**
 * Concurrent holders and their tokens. A hold begins or is extended only when its program looks at it, so
 * comparing then suffices.
 */
export class Claims {
  readonly #world: CoreWorld;
  readonly #present = new Set<Claim>();
  /** By name, and by slot where they are counted. */
  readonly #greatest = new Map<string, bigint>();
  readonly #greatestWriter = new Map<string, bigint>();

  constructor(world: CoreWorld) {
    this.#world = world;
  }

  begin(claim: Claim): void {
    const { process, resource, hold, token, slot } = claim;
    this.#world.log(`${process} has ${resource} as ${hold}, token ${token}, slot ${slot}`);
    this.#checkToken(claim);
    this.#present.add(claim);
    this.look(claim);
  }

  end(claim: Claim): void {
    this.#present.delete(claim);
  }

  /** The process has crashed. */
  gone(process: string): void {
    for (const claim of this.#present) if (claim.process === process) this.#present.delete(claim);
  }

  look(claim: Claim): void {
    const held = [...this.#present].filter(
      (other) => other.resource === claim.resource && other.remainingMs() > 0,
    );
    if (!held.includes(claim)) return;
    for (const other of held)
      if (other !== claim && excludes(claim, other))
        this.#world.report("exclusion", `${nameOf(claim)} beside ${nameOf(other)}`);
    if (claim.hold === "counted") this.#count(claim, held);
  }

  #count(claim: Claim, held: readonly Claim[]): void {
    const limit = greatest(
      held.map((each) => each.limit),
      0,
    );
    if (held.length > limit)
      this.#world.report("counted", `${held.length} hold ${claim.resource}, of ${limit} at most`);
    if (claim.slot >= claim.limit)
      this.#world.report("counted", `${nameOf(claim)}, and its limit is ${claim.limit}`);
  }

  /**
   * A token is greater than all earlier ones. Readers are concurrent, so their tokens need to be greater only
   * than those of earlier writers.
   */
  #checkToken(claim: Claim): void {
    const { hold, resource, slot, token } = claim;
    const place = hold === "counted" ? `${resource} ${slot}` : resource;
    const greatest = this.#greatest.get(place) ?? 0n;
    const before = hold === "reader" ? (this.#greatestWriter.get(place) ?? 0n) : greatest;
    if (token <= before) this.#world.report("tokens", `${nameOf(claim)} has token ${token}, after ${before}`);
    if (token > greatest) this.#greatest.set(place, token);
    if (hold === "writer") this.#greatestWriter.set(place, token);
  }
}

function excludes(one: Claim, other: Claim): boolean {
  if (one.hold === "counted") return one.slot === other.slot;
  return one.hold !== "reader" || other.hold !== "reader";
}

function nameOf({ hold, process, resource, slot, token }: Claim): string {
  return `${process} holds ${resource} as ${hold} (token ${token}, slot ${slot})`;
}
