import { setTimeout as sleep } from "node:timers/promises";
import type { Lease, Leases } from "../../packages/leasehold/src/index.js";
import type { TenureId } from "../../packages/leasehold/src/testing/history/journals/format.js";
import type { Random } from "../../packages/leasehold/src/common/ports.js";
import type { GuardClient } from "./guard-client.js";
import { type Journal, nowNs } from "./journal.js";
import { type Taken, type Task, nameOf, take } from "./tasks.js";

export interface Holding {
  readonly task: string;
  readonly held: boolean;
}

export interface WorkOptions {
  readonly leases: Leases;
  readonly task: Task;
  readonly journal: Journal;
  readonly guard: GuardClient;
  readonly random: Random;
  readonly lookEveryMs: number;
  readonly greedy: boolean;
  readonly onHolding: (holding: Holding) => void;
}

/** The longest delay between the check of the lease and the request to the guard, ms. */
const thinkMsMax = 200;
/** The time that must be left of the lease beyond that delay, for reaching the guard. */
const marginMs = 150;
const pauseMsMax = 30;
/** How long an ended lease is still looked at: it must not become held again. */
const lookAfterEndMs = 100;
/** The pause between two tries of a holder that doesn't wait. */
const retryMs = 50;
const greedyRetryMs = 10;
const waitMs = 20_000;

/**
 * Acquires leases for one task again and again, in different ways, and operates on the guarded resource while
 * it believes that it holds them.
 */
export class HolderWork {
  readonly #options: WorkOptions;

  constructor(options: WorkOptions) {
    this.#options = options;
  }

  async run(stop: AbortSignal): Promise<void> {
    const { journal, greedy } = this.#options;
    while (!stop.aborted) {
      try {
        const autoRenew = !greedy && this.#chance(0.75);
        const taken = await this.#take(autoRenew, stop);
        if (taken === undefined) await sleep(greedy ? greedyRetryMs : retryMs);
        else await this.#hold(taken, autoRenew, stop);
        await sleep(this.#between(0, pauseMsMax));
      } catch (error) {
        if (stop.aborted) return;
        const { code = "?", message } = error as { code?: string; message: string };
        journal.write({ event: "trouble", m: nowNs(), pid: process.pid, code: String(code), message });
        await sleep(retryMs);
      }
    }
  }

  /** Waits for the lease in most cases; otherwise tries once. */
  #take(autoRenew: boolean, signal: AbortSignal): Promise<Taken | undefined> {
    const { leases, task, greedy, random } = this.#options;
    const wait = !greedy && this.#chance(0.8) ? waitMs : undefined;
    return take(leases, task, { wait, signal, autoRenew }, random);
  }

  async #hold(taken: Taken, autoRenew: boolean, stop: AbortSignal): Promise<void> {
    const { journal, lookEveryMs, onHolding } = this.#options;
    const task = nameOf(this.#options.task);
    const about = taken.leases.map((lease) => aboutOf(lease, taken));
    // Without renewal the holder keeps the lease until it expires, which gives a takeover without a fault.
    const end =
      performance.now() + (autoRenew ? this.#between(300, this.#chance(0.3) ? 15_000 : 3_000) : Infinity);
    let operation = Promise.resolve();
    let isOperating = false;
    let held = this.#look(taken, about);
    onHolding({ task, held });
    while (held && performance.now() < end && !stop.aborted) {
      if (!isOperating) {
        isOperating = true;
        operation = this.#operate(taken, about).finally(() => (isOperating = false));
      }
      await sleep(lookEveryMs);
      held = this.#look(taken, about);
    }
    // A program stops using a resource before it releases the lease.
    if (held) await operation;
    const event = this.#look(taken, about) ? "release" : "lost";
    for (const one of about) journal.write({ event, m: nowNs(), ...one });
    onHolding({ task, held: false });
    const released = taken.release();
    await this.#lookOn(taken, about);
    await Promise.all([released, operation]);
  }

  /** Looks at the leases and writes one sample for each to the journal. */
  #look(taken: Taken, about: readonly TenureId[]): boolean {
    const m1 = nowNs();
    const remainingMs = taken.remaining();
    const m2 = nowNs();
    const ok = remainingMs > 0;
    for (const one of about)
      this.#options.journal.write({ event: "sample", m1, m2, ok, remainingMs, ...one });
    return ok;
  }

  async #lookOn(taken: Taken, about: readonly TenureId[]): Promise<void> {
    const end = performance.now() + lookAfterEndMs;
    while (performance.now() < end) {
      this.#look(taken, about);
      await sleep(4 * this.#options.lookEveryMs);
    }
  }

  /**
   * Operates as a careful program does: it starts only if enough of the lease is left. Only a pause can make
   * the operation late.
   */
  async #operate(taken: Taken, about: readonly TenureId[]): Promise<void> {
    const { guard, journal } = this.#options;
    const thinkMs = this.#between(0, thinkMsMax);
    const m1 = nowNs();
    if (taken.remaining() < thinkMs + marginMs) return;
    await sleep(thinkMs);
    for (const one of about) {
      const result = await guard.operate(one);
      journal.write({ event: "op", m1, m2: nowNs(), result, ...one });
    }
  }

  #chance(share: number): boolean {
    return this.#options.random.next() < share;
  }

  #between(min: number, max: number): number {
    return min + this.#options.random.next() * (max - min);
  }
}

/** The identity of one lease in the journal. */
function aboutOf({ holder, resource, token }: Lease, { form }: Taken): TenureId {
  return { pid: process.pid, incarnation: holder, resource, token, ...form };
}
