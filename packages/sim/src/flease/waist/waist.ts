import type { Reading } from "leasehold/inner/flease/protocol/clock.js";
import { FleaseProvider } from "leasehold/inner/flease/provider.js";
import type { FleaseRunner } from "leasehold/inner/flease/runner.js";
import type { FleaseDriver } from "leasehold/inner/flease/provider.js";
import { LeaseManager } from "leasehold/inner/lease/manager/lease-manager.js";
import type { Clock, Timers } from "leasehold/inner/common/ports.js";
import type { Leases } from "leasehold/inner/lease/types.js";
import { EventCode, Task } from "../../kit/events.js";
import type { ProgramNode } from "../stage/node.js";
import type { Stage } from "../stage/stage.js";
import { WatchedProvider } from "./watched-provider.js";

/** One life of a node whose programs use the waist: the classes of production, on the clocks and timers of this world. */
export class Waist implements FleaseDriver {
  readonly runner: FleaseDriver["runner"];
  readonly timers: Timers;
  readonly provider: FleaseProvider;
  readonly leases: Leases;
  readonly clock: Clock;
  readonly node: ProgramNode;
  /** By resource: the caller that cancels at the moment of the grant. */
  readonly tooLate = new Map<string, () => void>();
  /** The node is leaving. */
  closing = false;
  readonly #world: Stage;

  constructor(world: Stage, node: ProgramNode, runner: FleaseRunner, timers: Timers) {
    this.#world = world;
    this.node = node;
    this.timers = timers;
    const { random } = world;
    this.clock = { monotonicMs: () => this.#now().mono, wallMs: () => this.#now().wall };
    this.runner = {
      peer: runner.peer,
      world: { clock: this.clock, timers, random },
      now: () => this.#now(),
      get reading() {
        return runner.reading;
      },
      poke: () => {
        world.stir(node);
        runner.poke();
      },
    };
    this.provider = new FleaseProvider(this);
    const { provider: wrapped, leases: handed } = world.mistakes;
    const watched = new WatchedProvider(world, node, this.provider);
    const leases = new LeaseManager(wrapped?.(watched) ?? watched, this.runner.world);
    this.leases = handed?.(leases) ?? leases;
  }

  /** A clean exit: releases its leases, and reports when none is left. */
  leave(): void {
    if (this.closing) return;
    this.closing = true;
    this.#world.stir(this.node);
    void this.leases.close();
  }

  /** The provider has granted, and the lease layer does not know yet. */
  granted(resource: string): void {
    const changesItsMind = this.tooLate.get(resource);
    this.tooLate.delete(resource);
    if (changesItsMind !== undefined) void Promise.resolve().then(changesItsMind);
  }

  #now(): Reading {
    this.#world.stir(this.node);
    return this.node.runner!.now();
  }

  ask(member: number, method: string, params: object, timeoutMs: number): Promise<unknown> {
    return this.node.side!.ask(member, method, params, timeoutMs);
  }

  address(member: number): string {
    return this.#world.nodes[member]!.name;
  }

  /** Nothing here refuses a caller. */
  refusal(): undefined {
    return undefined;
  }

  reachable(): number {
    return this.#world.members.filter(({ peer }) => peer !== undefined).length;
  }

  close(): Promise<void> {
    const { incarnation, side } = this.node;
    side?.close();
    const leave = new Task(EventCode.start, () => {
      if (this.node.incarnation === incarnation) this.node.leave();
    });
    this.#world.schedule(leave, 0);
    return Promise.resolve();
  }
}
