import type { Lease } from "leasehold/inner/lease/types.js";
import type { ProgramNode } from "../stage/node.js";
import type { Claim, ClaimLookup, Waiter } from "../stage/observer.js";
import type { Stage } from "../stage/stage.js";

/** In half of the cases, when a program gets a resource, every program that believes it holds it checks. */
const othersLookRate = 0.5;

/** The index of claims on the lease layer. */
export class Claims implements ClaimLookup {
  readonly #world: Stage;
  readonly #present = new Set<Claim>();
  readonly #waiters = new Set<Waiter>();
  /** By resource: the newest. */
  readonly #last = new Map<string, Claim>();

  constructor(world: Stage) {
    this.#world = world;
  }

  waits(node: ProgramNode, resource: string): Waiter {
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

  has(node: ProgramNode, resource: string): boolean {
    for (const claim of this.#present) if (claim.node === node && claim.resource === resource) return true;
    return false;
  }

  begin(node: ProgramNode, lease: Lease, shared = false): Claim {
    const world = this.#world;
    const { resource } = lease;
    const claim: Claim = {
      node,
      incarnation: node.incarnation,
      resource,
      token: Number(lease.token),
      lease,
      shared,
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
  crash(node: ProgramNode): void {
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
