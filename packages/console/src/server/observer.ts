import { setTimeout as sleep } from "node:timers/promises";
import type { Leases } from "leasehold";
import type { GroundStatus } from "leasehold/cli";
import type { GroundView } from "../record/messages.js";
import { groundView } from "../record/ground.js";
import { LeaseRecord } from "../record/record.js";

/** The pause between queries for the ends of leases and the ground's state. */
const askEveryMs = 1_000;
/**
 * Pauses are at least this many times as long as the query before, so queries take at most a twentieth of the
 * time.
 */
const askShare = 20;
const retryMs = 2_000;

export interface ObserverParts {
  readonly leases: Leases;
  readonly askGround: () => Promise<GroundStatus>;
}

/** Follows all leases and the state of their ground, until it is closed. */
export class Observer {
  readonly record = new LeaseRecord();
  readonly #parts: ObserverParts;
  readonly #stop = new AbortController();
  readonly #troubles = new Map<string, string>();
  readonly #work: Promise<unknown>;
  #ground: GroundView | undefined;

  constructor(parts: ObserverParts) {
    this.#parts = parts;
    this.#work = Promise.all([
      this.#repeat("leases", () => this.#watch()),
      this.#repeat("ends", () => this.#ends()),
      this.#repeat("ground", () => this.#look()),
    ]);
  }

  get ground(): GroundView | undefined {
    return this.#ground;
  }

  /** The reason why the record may be out of date. */
  get trouble(): string | undefined {
    const [first] = this.#troubles.values();
    return first;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#work;
  }

  /** Runs `work` repeatedly, with a pause after each run and a longer one after a failure. */
  async #repeat(what: string, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const begunMs = performance.now();
      try {
        await work();
        this.#troubles.delete(what);
        await this.#pause(Math.max(askEveryMs, askShare * (performance.now() - begunMs)));
      } catch (error) {
        if (signal.aborted) return;
        const text = error instanceof Error ? error.message : String(error);
        if (this.#troubles.get(what) !== text) this.record.note("trouble", text, Date.now());
        this.#troubles.set(what, text);
        await this.#pause(retryMs);
      }
    }
  }

  #pause(ms: number): Promise<unknown> {
    return sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  async #watch(): Promise<void> {
    const { leases } = this.#parts;
    this.record.begin(await leases.list("", { signal: this.#stop.signal }), Date.now());
    this.#troubles.delete("leases");
    for await (const change of leases.watch("", { signal: this.#stop.signal })) {
      this.record.change(change, Date.now());
    }
  }

  async #ends(): Promise<void> {
    const { signal } = this.#stop;
    this.record.renewed(await this.#parts.leases.list("", { signal }), Date.now());
  }

  async #look(): Promise<void> {
    const before = this.#ground;
    const ground = groundView(await this.#parts.askGround());
    this.#ground = ground;
    const nowMs = Date.now();
    if (before !== undefined && before.summary !== ground.summary)
      this.record.note("ground", ground.summary, nowMs);
    for (const { id, text, state } of ground.parts) {
      const last = before?.parts.find((part) => part.id === id);
      if (last !== undefined && last.state !== state) this.record.note("ground", `${id}: ${text}`, nowMs);
    }
  }
}
