import { Alarm } from "../../../lease/manager/alarm.js";
import { HeldLease } from "../../../lease/manager/held-lease.js";
import type { LeaseKeeper } from "../../../lease/manager/held-lease.js";
import { CommonTerms } from "../../../lease/manager/lease-terms.js";
import type { LeaseLostError } from "../../../lease/errors.js";
import type { World } from "../../../common/ports.js";
import type {
  AttemptRequest,
  Cancellation,
  Grant,
  ProviderEvents,
  ReleaseRequest,
  Upkeep,
  Watching,
} from "../../../lease/provider.js";
import type { ResourceHint } from "../../../lease/types.js";
import type { FleaseProvider } from "../../provider.js";
import type { Reading } from "../../protocol/clock.js";
import { plainError } from "./messages.js";
import type { Answer, AttemptAnswer, Call, FromWorker, ListAnswer, ToWorker } from "./messages.js";
import { RenewingThread, SharedValidity } from "../../threads.js";
import type { SharedThreads } from "../../threads.js";

/** Options for serving a program's leases from this thread. */
export interface LeaseServerOptions {
  readonly flease: FleaseProvider;
  readonly world: World;
  readonly now: () => Reading;
  readonly threads: SharedThreads;
  readonly busyMsMax: number;
  readonly post: (message: FromWorker) => void;
}

class ServedLease {
  readonly id: number;
  readonly validity = new SharedValidity();
  lease: HeldLease | undefined;
  /** The program releases it, and needs no report of its end. */
  released = false;
  /** The program saw it end early. */
  early = false;

  constructor(id: number) {
    this.id = id;
  }
}

/**
 * The renewing side: answers the program thread's calls with a Flease provider of its own thread, keeps
 * every grant as a lease that renews itself, and publishes how long each is valid.
 */
export class LeaseServer implements ProviderEvents, LeaseKeeper {
  readonly provider: LeaseKeeper["provider"];
  readonly world: World;
  readonly alarm: Alarm;
  readonly terms: CommonTerms<LeaseKeeper> = new CommonTerms<LeaseKeeper>(this);
  readonly #options: LeaseServerOptions;
  readonly #byId = new Map<number, ServedLease>();
  readonly #byGrant = new Map<Grant, ServedLease>();
  readonly #attempts = new Map<number, Cancellation & { cancelled: boolean }>();
  readonly #watches = new Map<number, Watching>();
  readonly #thread: RenewingThread;
  #nextGrant = 1;
  #holder: string;

  constructor(options: LeaseServerOptions) {
    const { flease, world } = options;
    this.#options = options;
    this.world = world;
    this.alarm = new Alarm(world);
    this.#holder = flease.holder;
    this.#thread = new RenewingThread(options.threads, flease.holder);
    this.provider = {
      get holder() {
        return flease.holder;
      },
      renew: (grant, ttlMs) => this.#extend(grant, ttlMs),
      forgoRenewal: (grant) => flease.forgoRenewal(grant),
    };
    flease.attach(this);
  }

  /** Handles one message of the program's thread. */
  receive(message: Exclude<ToWorker, { type: "close" }>): void {
    if (message.type === "cancel") {
      this.#cancel(message.call);
      return;
    }
    if (message.type === "watch" || message.type === "unwatch") {
      this.#watch(message);
      return;
    }
    const { post } = this.#options;
    this.#answer(message).then(
      (value) => post({ type: "answer", call: message.call, value }),
      (error: unknown) => post({ type: "thrown", call: message.call, error: plainError(error) }),
    );
  }

  #cancel(call: number): void {
    const attempt = this.#attempts.get(call);
    if (attempt === undefined) return;
    attempt.cancelled = true;
    attempt.onCancel?.();
  }

  #watch(message: Extract<ToWorker, { type: "watch" | "unwatch" }>): void {
    const { watch } = message;
    if (message.type === "unwatch") {
      this.#watches.get(watch)?.stop();
      this.#watches.delete(watch);
      return;
    }
    const { flease, post } = this.#options;
    const report = (hint: ResourceHint) => post({ type: "watched", watch, hint });
    // Members, unlike stores, can always report all changes to a watcher.
    const failed = () => undefined;
    this.#watches.set(watch, flease.inspection.watch(message.prefix, report, failed));
  }

  /** Publishes a clock reading: each thread also judges by the other's. Called several times a second. */
  noteClock(): void {
    const { flease, now } = this.#options;
    if (!this.#thread.note(now(), flease.holder)) flease.distrustClocks();
    this.#noteHolder();
  }

  /** Called by the provider. */
  lost(grant: Grant, error: LeaseLostError): void {
    const served = this.#byGrant.get(grant);
    served?.validity.finish(error.reason);
    void served?.lease?.end(error.reason, error);
    this.#noteHolder();
  }

  /**
   * Called by the provider. Only the other thread knows whether anyone waits; a lost hint costs a little
   * time.
   */
  hint(resource: string): boolean {
    this.#options.post({ type: "hint", resource });
    return true;
  }

  /** Called by the provider. */
  releaseRequested(request: ReleaseRequest): void {
    this.#options.post({ type: "releaseRequested", request });
  }

  /** Called by a lease that has ended. */
  async takeBack(lease: HeldLease): Promise<void> {
    const served = this.#byGrant.get(lease.grant);
    served?.validity.finish(lease.ended ?? "expired");
    this.#byGrant.delete(lease.grant);
    if (served?.early === true) this.#options.flease.letRunOut(lease.grant);
    await this.#options.flease.release(lease.grant);
    if (served === undefined || served.released) return;
    const { reason } = lease.signal;
    this.#options.post({ type: "lost", grant: served.id, error: plainError(reason) });
  }

  async #answer(message: Call): Promise<Answer> {
    const { flease } = this.#options;
    switch (message.type) {
      case "attempt":
        return this.#attempt(message.call, message.request);
      case "renew":
        return this.#renew(message.grant);
      case "keep":
        return this.#keep(message.grant, message.upkeep);
      case "release":
        return this.#release(message.grant, message.early);
      case "detach":
        return this.#detach(message.grant);
      case "query":
        return flease.query(message.resource, message.timeoutMs);
      case "list":
        return this.#list(message.prefix, message.timeoutMs, message.partial);
      case "favour":
        return flease.inspection.favour(message.resource, message.to, message.timeoutMs);
      case "explain":
      case "requestRelease":
      case "breakLease":
        return flease.inspection[message.type](message.resource, message.timeoutMs);
    }
  }

  async #list(prefix: string, timeoutMs: number, partial: boolean): Promise<ListAnswer> {
    const { flease } = this.#options;
    if (!partial) return { hints: await flease.list(prefix, timeoutMs) };
    let incomplete: string | undefined;
    const hints = await flease.list(prefix, timeoutMs, (why) => (incomplete = why));
    return incomplete === undefined ? { hints } : { hints, incomplete };
  }

  async #attempt(call: number, request: AttemptRequest): Promise<AttemptAnswer> {
    const cancellation = { cancelled: false, onCancel: undefined };
    this.#attempts.set(call, cancellation);
    const outcome = await this.#options.flease.attempt(request, cancellation);
    this.#attempts.delete(call);
    if (outcome.kind === "failed") return { ...outcome, error: plainError(outcome.error) };
    if (outcome.kind === "held") return outcome;
    const { grant } = outcome;
    const served = new ServedLease(this.#nextGrant++);
    this.#byId.set(served.id, served);
    this.#byGrant.set(grant, served);
    const { autoRenew = true, maxHoldMs = Infinity } = request.upkeep ?? {};
    served.lease = new HeldLease(this, grant, { ttlMs: request.ttlMs, autoRenew, maxHoldMs });
    this.#publish(grant);
    const clock = this.#options.flease.clockStart(this.#options.threads.epoch);
    return { kind: "granted", grant: served.id, token: grant.token, validity: served.validity.buffer, clock };
  }

  async #renew(id: number): Promise<boolean> {
    try {
      await this.#byId.get(id)?.lease?.renew();
      return true;
    } catch {
      return false;
    }
  }

  async #keep(id: number, upkeep: Upkeep): Promise<boolean> {
    const lease = this.#byId.get(id)?.lease;
    if (lease === undefined) return false;
    await lease.keep(upkeep);
    this.#publish(lease.grant);
    return true;
  }

  async #release(id: number, early: boolean): Promise<boolean> {
    const served = this.#byId.get(id);
    if (served === undefined) return false;
    // First apply what the other thread has seen of the clocks.
    this.noteClock();
    served.released = true;
    served.early = early;
    this.#byId.delete(id);
    await served.lease?.release();
    return true;
  }

  #detach(id: number): boolean {
    this.#byId.get(id)?.lease?.letRunOut();
    return this.#byId.has(id);
  }

  async #extend(grant: Grant, ttlMs: number): Promise<boolean> {
    const { flease, threads, busyMsMax, world } = this.#options;
    // A program that hangs must not keep its leases.
    if (world.clock.monotonicMs() - threads.signOfLifeMs > busyMsMax) return false;
    const extended = await flease.renew(grant, ttlMs);
    this.#publish(grant);
    return extended;
  }

  #publish(grant: Grant): void {
    const validity = this.#options.flease.validity(grant);
    const served = this.#byGrant.get(grant);
    if (validity === undefined || served?.lease === undefined) return;
    // The clock is published first: with a newer end and an older clock the other thread would see too much
    // time left.
    this.noteClock();
    served.validity.extend(validity.expiresWallMs, validity.expiresMonoMs, served.lease.latestMs);
    if (validity.broken) served.validity.lossReason = "broken";
  }

  #noteHolder(): void {
    const { holder } = this.#options.flease;
    if (holder === this.#holder) return;
    this.#holder = holder;
    this.#options.post({ type: "holder", holder });
  }
}
