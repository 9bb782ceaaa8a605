import { unwatchAbort, watchAbort } from "../common/abort-watch.js";
import type { Timer, World } from "../common/ports.js";
import type { JsonValue } from "../lease/json-value.js";
import { LeaseholdError } from "../lease/errors.js";
import { PrefixView } from "../lease/prefix-view.js";
import type { ResourceHint } from "../lease/types.js";
import { dataText } from "../lease/tenure-data.js";
import type { Presence, Registration, Registry } from "../membership/registry.js";
import type { CoreClient, Entry } from "./core-client.js";

/** Number of refreshes during a registration's lease. */
const refreshesPerLease = 3;

/** Time limit for removing a name, ms. Afterwards its lease expires. */
const leaveMsMax = 2_000;

/** The pause after the core did not answer, ms. */
const retryMs = 1_000;

export interface CoreRegistryParts {
  readonly core: CoreClient;
  readonly world: World;
  /** The prefix of the group's keys. */
  readonly prefix: string;
  /** Whole seconds: the precision only affects how soon a crash is noticed. */
  readonly ttlSeconds: number;
  readonly jitterMs: number;
  drawLeaseId(): bigint;
}

/**
 * A group as plain keys of a core: the key is the prefix and a member's name, the value is the member's data
 * as JSON, attached to a lease of its own. Every client of etcd can read them, and a key that another client
 * writes there is a member as well.
 */
export class CoreRegistry implements Registry {
  readonly #parts: CoreRegistryParts;

  constructor(parts: CoreRegistryParts) {
    this.#parts = parts;
  }

  async keep(
    registration: Registration,
    signal: AbortSignal,
    report: (isIn: boolean) => void,
  ): Promise<void> {
    const { random } = this.#parts.world;
    while (!signal.aborted) {
      const leaseId = this.#parts.drawLeaseId();
      try {
        if (await this.#register(registration, leaseId, signal)) {
          report(true);
          await this.#refresh(registration, leaseId, signal);
          report(false);
        }
      } catch (error) {
        // After such a failure the next server may answer; a refusal is final.
        if (!(error instanceof LeaseholdError) || !mayPass.has(error.code)) throw error;
        await this.#pause(retryMs, signal);
      } finally {
        await this.#takeOut(leaseId);
      }
      if (!signal.aborted) await this.#pause(random.next() * this.#parts.jitterMs, signal);
    }
  }

  async follow(signal: AbortSignal, report: (presence: Presence) => void): Promise<void> {
    const { core, prefix } = this.#parts;
    const view = new PrefixView((hint) => {
      const { resource: name, state, token = 0n, data } = hint;
      report({ name, isThere: state === "held", token, data });
    });
    while (!signal.aborted) {
      try {
        const { entries, revision } = await core.list(prefix, { timeoutMs: this.#ttlMs });
        view.list(entries.flatMap((entry) => this.#hintOf(entry)));
        await this.#untilMissed(revision + 1n, signal, view);
      } catch (error) {
        if (!(error instanceof LeaseholdError) || !mayPass.has(error.code)) throw error;
        await this.#pause(retryMs, signal);
      }
    }
    view.stop();
  }

  close(): void {
    this.#parts.core.close();
  }

  get #ttlMs(): number {
    return 1_000 * this.#parts.ttlSeconds;
  }

  /**
   * Returns false if another member had the name. Then that member has left, or the wait for that is over.
   */
  async #register({ name, data }: Registration, leaseId: bigint, signal: AbortSignal): Promise<boolean> {
    const { core, prefix, ttlSeconds } = this.#parts;
    const limits = { timeoutMs: this.#ttlMs };
    const key = prefix + name;
    await core.grantLease(leaseId, ttlSeconds, limits);
    const { entry, revision } = await core.create(
      key,
      data === undefined ? "" : dataText(data),
      leaseId,
      limits,
    );
    if (entry.leaseId === leaseId) return true;
    await this.#until(signal, this.#ttlMs, (done) => {
      const watching = core.watch({ key, isPrefix: false }, revision + 1n, {
        deleted: done,
        missed: done,
        written: () => undefined,
      });
      return () => watching.stop();
    });
    return false;
  }

  /** Refreshes until the signal aborts or the registration is lost. */
  async #refresh({ name }: Registration, leaseId: bigint, signal: AbortSignal): Promise<void> {
    const { core, prefix, world } = this.#parts;
    const stepMs = this.#ttlMs / refreshesPerLease;
    let endMs = world.clock.monotonicMs() + this.#ttlMs;
    while (!signal.aborted && world.clock.monotonicMs() < endMs) {
      await this.#pause(stepMs, signal);
      if (signal.aborted) return;
      const begunMs = world.clock.monotonicMs();
      try {
        const { seconds } = await core.refreshLease(leaseId, { timeoutMs: stepMs });
        const { entry } = await core.read(prefix + name, { timeoutMs: stepMs });
        if (seconds <= 0 || entry?.leaseId !== leaseId) return;
        endMs = begunMs + this.#ttlMs;
      } catch (error) {
        if (!(error instanceof LeaseholdError) || !mayPass.has(error.code)) throw error;
      }
    }
  }

  async #takeOut(leaseId: bigint): Promise<void> {
    try {
      await this.#parts.core.revokeLease(leaseId, { timeoutMs: leaveMsMax });
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
    }
  }

  async #untilMissed(from: bigint, signal: AbortSignal, view: PrefixView): Promise<void> {
    const { core, prefix } = this.#parts;
    await this.#until(signal, Infinity, (done) => {
      const watching = core.watch({ key: prefix, isPrefix: true }, from, {
        written: (entry) => {
          for (const hint of this.#hintOf(entry)) view.held(hint);
        },
        deleted: (key) => view.free(key.slice(prefix.length)),
        missed: done,
      });
      return () => watching.stop();
    });
  }

  /** Returns nothing for keys below a member, which belong to another group. */
  #hintOf({ key, value, createRevision }: Entry): ResourceHint[] {
    const resource = key.slice(this.#parts.prefix.length);
    if (resource === "" || resource.includes("/")) return [];
    const data = value === "" ? {} : { data: jsonOf(value) };
    return [{ resource, state: "held", token: createRevision, ...data }];
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return this.#until(signal, ms, () => () => undefined);
  }

  /** Waits until `done` is called, the signal aborts or the time passes. */
  async #until(signal: AbortSignal, ms: number, begin: (done: () => void) => () => void): Promise<void> {
    let timer: Timer | undefined;
    let wake: () => void = () => undefined;
    const woken = new Promise<void>((resolve) => (wake = resolve));
    const stop = begin(wake);
    if (ms < Infinity) timer = this.#parts.world.timers.after(ms, wake);
    watchAbort(signal, wake);
    await woken;
    timer?.cancel();
    unwatchAbort(signal, wake);
    stop();
  }
}

const mayPass: ReadonlySet<string> = new Set(["NO_QUORUM", "TIMEOUT", "OVERLOADED", "UNREACHABLE"]);

/** Values written by other clients need not be JSON. */
function jsonOf(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}
