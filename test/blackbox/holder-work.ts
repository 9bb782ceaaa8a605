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

/** An operation takes up to this long between the look at the lease and the request. */
const thinkMsMax = 200;
/** So much more must be left of the lease, for the way to the guard. */
const marginMs = 150;
const pauseMsMax = 30;
/** A lease that is gone is looked at for a while: it must not come back. */
const lookAfterEndMs = 100;
/** Between two tries of one who does not wait. */
const retryMs = 50;
const greedyRetryMs = 10;
const waitMs = 20_000;

/** Does one task again and again, in different ways, and operates on what its leases protect as long as it believes to hold them. */
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

  /** Some wait for their turn, others look whether they are lucky. */
  #take(autoRenew: boolean, signal: AbortSignal): Promise<Taken | undefined> {
    const { leases, task, greedy, random } = this.#options;
    const wait = !greedy && this.#chance(0.8) ? waitMs : undefined;
    return take(leases, task, { wait, signal, autoRenew }, random);
  }

  async #hold(taken: Taken, autoRenew: boolean, stop: AbortSignal): Promise<void> {
    const { journal, lookEveryMs, onHolding } = this.#options;
    const task = nameOf(this.#options.task);
    const about = taken.leases.map((lease) => aboutOf(lease, taken));
    // A holder that does not renew keeps it to its end: a takeover without a fault.
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
    // A program stops before it gives back what it used.
    if (held) await operation;
    const event = this.#look(taken, about) ? "release" : "lost";
    for (const one of about) journal.write({ event, m: nowNs(), ...one });
    onHolding({ task, held: false });
    const released = taken.release();
    await this.#lookOn(taken, about);
    await Promise.all([released, operation]);
  }

  /** Each look is written down, for each of the leases. */
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

  /** As a careful program does it: enough must be left for all of it. Only a pause can make it come too late. */
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

/** What there is to say about one lease in a journal. */
function aboutOf({ holder, resource, token }: Lease, { form }: Taken): TenureId {
  return { pid: process.pid, incarnation: holder, resource, token, ...form };
}
