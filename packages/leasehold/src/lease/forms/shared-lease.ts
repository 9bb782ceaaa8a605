import type { LeaseLostError, LossReason } from "../errors.js";
import { inspected } from "../plain-data.js";
import type { Upkeep } from "../provider.js";
import type { Lease, LeaseTicket } from "../types.js";
import type { Held } from "./exclusive.js";

/**
 * A reader's lease: the lease on its slot, but with the caller's name for the resource and the gate's token.
 */
export class SharedLease implements Held {
  readonly resource: string;
  readonly token: bigint;
  readonly #slot: Held;

  constructor(gate: Held, slot: Held) {
    this.resource = gate.resource;
    this.token = gate.token;
    this.#slot = slot;
    // The gate is already being released.
    slot.releaseWith(gate.release());
  }

  get slot(): number {
    return this.#slot.slot;
  }

  get holder(): string {
    return this.#slot.holder;
  }

  get ttlMs(): number {
    return this.#slot.ttlMs;
  }

  get signal(): AbortSignal {
    return this.#slot.signal;
  }

  get releaseRequested(): AbortSignal {
    return this.#slot.releaseRequested;
  }

  get loss(): LeaseLostError | undefined {
    return this.#slot.loss;
  }

  get ended(): LossReason | undefined {
    return this.#slot.ended;
  }

  set hasWork(hasWork: boolean) {
    this.#slot.hasWork = hasWork;
  }

  remaining(): number {
    return this.#slot.remaining();
  }

  assertHeld(atLeastMs?: number): void {
    this.#slot.assertHeld(atLeastMs);
  }

  resign(reason: unknown): void {
    this.#slot.resign(reason);
  }

  keep(terms: Upkeep): Promise<void> {
    return this.#slot.keep(terms);
  }

  releaseWith(others: Promise<unknown>): void {
    this.#slot.releaseWith(others);
  }

  renew(): Promise<void> {
    return this.#slot.renew();
  }

  release(): Promise<void> {
    return this.#slot.release();
  }

  /** Returns no handle: a program that attached it would have the slot but no token of the gate. */
  async detach(): Promise<LeaseTicket> {
    const { remainingMs } = await this.#slot.detach();
    const { resource, holder, token } = this;
    return { resource, holder, token: token.toString(), remainingMs };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  [inspected]() {
    return this.toJSON();
  }

  toJSON(): ReturnType<Lease["toJSON"]> {
    const { resource, holder, token } = this;
    return { resource, holder, token: token.toString(), remainingMs: this.remaining() };
  }
}
