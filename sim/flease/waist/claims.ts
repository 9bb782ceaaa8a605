import type { Lease } from "../../../src/lease/types.js";
import type { SimNode } from "../node.js";
import type { ClaimLookup } from "../observer.js";
import type { World } from "../world.js";

/** What one program was given, and what it has seen of it since. */
export interface Claim {
  readonly node: SimNode;
  readonly incarnation: number;
  readonly resource: string;
  readonly token: number;
  readonly lease: Lease;
  readonly beganMs: number;
  /** When its program last looked and saw it held. */
  heldMs: number;
  /** When its program stopped to use the resource, or saw that it must; undefined while it goes on. */
  endedMs: number | undefined;
}

/** One look of a program at its lease. */
export interface Look {
  readonly claim: Claim;
  readonly remainingMs: number;
  /** Whether the lease's signal says that it is over. */
  readonly aborted: boolean;
}

/** A call that waits for a resource, on the waist of a process that is alive. */
export interface Waiter {
  readonly node: SimNode;
  readonly resource: string;
  readonly sinceMs: number;
}

/** In half of the cases all who believe that they hold a resource look when another is given it. */
const othersLookRate = 0.5;

/** The book of what the programs on the waist see. */
export class Claims implements ClaimLookup {
  readonly #world: World;
  readonly #present = new Set<Claim>();
  readonly #waiters = new Set<Waiter>();
  /** By resource: the newest. */
  readonly #last = new Map<string, Claim>();

  constructor(world: World) {
    this.#world = world;
  }

  waits(node: SimNode, resource: string): Waiter {
    const waiter = { node, resource, sinceMs: this.#world.nowMs };
    this.#waiters.add(waiter);
    return waiter;
  }

  waited(waiter: Waiter): void {
    this.#waiters.delete(waiter);
  }

  waiting(): Iterable<Waiter> {
    return this.#waiters;
  }

  has(node: SimNode, resource: string): boolean {
    for (const claim of this.#present) if (claim.node === node && claim.resource === resource) return true;
    return false;
  }

  begin(node: SimNode, lease: Lease): Claim {
    const world = this.#world;
    const { resource } = lease;
    const claim: Claim = {
      node,
      incarnation: node.incarnation,
      resource,
      token: Number(lease.token),
      lease,
      beganMs: world.nowMs,
      heldMs: world.nowMs,
      endedMs: undefined,
    };
    world.story?.(`a program of ${node.name} is given ${resource}, token ${claim.token}`);
    this.#countHandOver(claim);
    this.#present.add(claim);
    this.#last.set(resource, claim);
    for (const claimBegan of world.observers.claimBegan) claimBegan(claim);
    this.look(claim);
    if (world.random.chance(othersLookRate))
      for (const other of this.#present) if (this.#canLook(other, claim)) this.look(other);
    return claim;
  }

  /** The program asks how long it still has the resource. */
  look(claim: Claim): number {
    const world = this.#world;
    const remainingMs = claim.lease.remaining();
    const look = { claim, remainingMs, aborted: claim.lease.signal.aborted };
    if (remainingMs > 0) claim.heldMs = world.nowMs;
    else this.end(claim);
    for (const claimLooked of world.observers.claimLooked) claimLooked(look);
    return remainingMs;
  }

  /** The node has died, and its programs with it. */
  crash(node: SimNode): void {
    for (const claim of this.#present) if (claim.node === node) this.#present.delete(claim);
    for (const waiter of this.#waiters) if (waiter.node === node) this.#waiters.delete(waiter);
  }

  /** The program does not use the resource any more. */
  end(claim: Claim): void {
    if (claim.endedMs === undefined) {
      claim.endedMs = this.#world.nowMs;
      this.#world.story?.(`a program of ${claim.node.name} stops to use ${claim.resource}`);
    }
    this.#present.delete(claim);
  }

  #canLook(other: Claim, than: Claim): boolean {
    return other !== than && other.resource === than.resource && !other.node.paused;
  }

  #countHandOver({ node, incarnation, resource }: Claim): void {
    const last = this.#last.get(resource);
    if (last?.node !== node || last.incarnation !== incarnation || last.endedMs === undefined) return;
    for (const waiter of this.#waiters) {
      if (waiter.node !== node || waiter.resource !== resource || waiter.sinceMs > last.endedMs) continue;
      this.#world.counters.localHandOvers += 1;
      return;
    }
  }
}
