import { setTimeout as sleep } from "node:timers/promises";
import type { Lease, Leases } from "../../src/index.js";
import type { Random } from "../../src/common/ports.js";
import type { GuardClient } from "./guard-client.js";
import { type Journal, nowNs } from "./journal.js";

export interface Holding {
  readonly resource: string;
  readonly held: boolean;
}

export interface WorkOptions {
  readonly leases: Leases;
  readonly resource: string;
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

/** What there is to say about one lease in a journal. */
interface About {
  readonly pid: number;
  readonly incarnation: string;
  readonly resource: string;
  readonly token: bigint;
}

/** Takes one resource again and again, in different ways, and operates on what it protects as long as it believes to hold it. */
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
        const lease = await this.#take(autoRenew, stop);
        if (lease === undefined) await sleep(greedy ? greedyRetryMs : retryMs);
        else await this.#hold(lease, autoRenew, stop);
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
  #take(autoRenew: boolean, signal: AbortSignal): Promise<Lease | undefined> {
    const { leases, resource, greedy } = this.#options;
    return !greedy && this.#chance(0.8)
      ? leases.acquire(resource, { wait: waitMs, signal, autoRenew })
      : leases.tryAcquire(resource, { signal, autoRenew });
  }

  async #hold(lease: Lease, autoRenew: boolean, stop: AbortSignal): Promise<void> {
    const { journal, resource, lookEveryMs, onHolding } = this.#options;
    const about = { pid: process.pid, incarnation: lease.holder, resource, token: lease.token };
    // A holder that does not renew keeps it to its end: a takeover without a fault.
    const end =
      performance.now() + (autoRenew ? this.#between(300, this.#chance(0.3) ? 15_000 : 3_000) : Infinity);
    let operation = Promise.resolve();
    let isOperating = false;
    let held = this.#look(lease, about);
    onHolding({ resource, held });
    while (held && performance.now() < end && !stop.aborted) {
      if (!isOperating) {
        isOperating = true;
        operation = this.#operate(lease, about).finally(() => (isOperating = false));
      }
      await sleep(lookEveryMs);
      held = this.#look(lease, about);
    }
    // A program stops before it gives back what it used.
    if (held) await operation;
    if (this.#look(lease, about)) journal.write({ event: "release", m: nowNs(), ...about });
    else journal.write({ event: "lost", m: nowNs(), ...about });
    onHolding({ resource, held: false });
    const released = lease.release();
    await this.#lookOn(lease, about);
    await Promise.all([released, operation]);
  }

  /** Each look is written down. */
  #look(lease: Lease, about: About): boolean {
    const m1 = nowNs();
    const remainingMs = lease.remaining();
    const m2 = nowNs();
    const ok = remainingMs > 0;
    this.#options.journal.write({ event: "sample", m1, m2, ok, remainingMs, ...about });
    return ok;
  }

  async #lookOn(lease: Lease, about: About): Promise<void> {
    const end = performance.now() + lookAfterEndMs;
    while (performance.now() < end) {
      this.#look(lease, about);
      await sleep(4 * this.#options.lookEveryMs);
    }
  }

  /** As a careful program does it: enough must be left for all of it. Only a pause can make it come too late. */
  async #operate(lease: Lease, about: About): Promise<void> {
    const { guard, journal, resource } = this.#options;
    const thinkMs = this.#between(0, thinkMsMax);
    const m1 = nowNs();
    if (lease.remaining() < thinkMs + marginMs) return;
    await sleep(thinkMs);
    const result = await guard.operate(resource, about.token);
    journal.write({ event: "op", m1, m2: nowNs(), result, ...about });
  }

  #chance(share: number): boolean {
    return this.#options.random.next() < share;
  }

  #between(min: number, max: number): number {
    return min + this.#options.random.next() * (max - min);
  }
}
