import { getOrInsert } from "../common/maps.js";
import { parseDuration } from "../lease/duration.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { Duration, Leases } from "../lease/types.js";
import { MemoryGround } from "./memory-ground.js";
import { MemoryProvider } from "./memory-provider.js";
import { ProcessSwitch } from "./process-switch.js";
import { VirtualWorld } from "./virtual-world.js";

/** Longer than a participant waits when it closes. */
const closeMsMax = 10_000;

export interface MemoryClusterOptions {
  /** The longest lease and the default TTL. Default `"15s"`, as in a real cluster. */
  ttlMax?: Duration | undefined;
  /** The seed of the random numbers that spread retries; runs with the same seed are identical. Default 1. */
  seed?: number | undefined;
}

/**
 * A cluster in memory with virtual time, for testing a program under faults without sleeping.
 *
 * @example
 * ```ts
 * const cluster = new MemoryCluster();
 * const lease = await cluster.open("worker-1").acquire("reports");
 * cluster.cutOff("worker-1");             // its renewals find nobody
 * await cluster.advance("15s");           // no real time passes
 * assert(lease.signal.aborted);
 * const next = await cluster.open("worker-2").acquire("reports");
 * assert(next.token > lease.token);
 * await cluster.close();
 * ```
 */
export class MemoryCluster implements AsyncDisposable {
  /** The cluster's clocks and timers, with `block`, `suspend` and `stepWall`. */
  readonly world: VirtualWorld;

  readonly #ttlMaxMs: number;
  readonly #ground = new MemoryGround();
  readonly #processes = new Map<string, ProcessSwitch>();
  readonly #opened: Leases[] = [];

  constructor(options: MemoryClusterOptions = {}) {
    this.#ttlMaxMs = parseDuration(options.ttlMax ?? "15s", "ttlMax");
    this.world = new VirtualWorld({ seed: options.seed ?? 1 });
  }

  /**
   * Opens a participant. Participants with the same name live in the same process: they are cut off and
   * paused together.
   */
  open(name: string): Leases {
    const process = this.#process(name);
    const { clock, random, timers } = this.world;
    const world = { clock, random, timers: process.timers(timers) };
    const provider = new MemoryProvider(this.#ground, world, { name, ttlMaxMs: this.#ttlMaxMs, process });
    const leases = new LeaseManager(provider, world);
    this.#opened.push(leases);
    return leases;
  }

  /** Advances virtual time. Renewals, expiries and retries happen on the way, each at its time. */
  advance(duration: Duration): Promise<void> {
    return this.world.advance(duration);
  }

  /**
   * The participant's requests stay unanswered until {@link reconnect}: its leases expire, `acquire` finds no
   * quorum.
   */
  cutOff(name: string): void {
    this.#process(name).cutOff();
  }

  reconnect(name: string): void {
    this.#process(name).reconnect();
  }

  /**
   * Stops the participant's process until {@link resume}, like SIGSTOP: its timers do not run and it receives
   * nothing, so nothing is renewed and no loss is noticed, while time passes for the others. Code of the test
   * itself continues.
   */
  pause(name: string): void {
    this.#process(name).pause();
  }

  resume(name: string): void {
    this.#process(name).resume();
  }

  /**
   * Makes the holder of the resource lose it now, as after a clock fault. Returns false if nobody held it.
   */
  lose(resource: string): boolean {
    return this.#ground.lose(resource);
  }

  /** Closes all participants, and advances virtual time as far as bounded waits need. */
  async close(): Promise<void> {
    for (const process of this.#processes.values()) process.resume();
    const closing = Promise.all(this.#opened.map((leases) => leases.close()));
    await this.advance(closeMsMax);
    await closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #process(name: string): ProcessSwitch {
    return getOrInsert(this.#processes, name, () => new ProcessSwitch());
  }
}
