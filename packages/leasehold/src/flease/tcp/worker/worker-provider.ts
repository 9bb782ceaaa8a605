// Without the `node:` prefix webpack finds the thread's file by itself.
import { Worker, type WorkerOptions } from "worker_threads";
import { LeaseholdError, LeaseLostError } from "../../../lease/errors.js";
import type { LossReason } from "../../../lease/errors.js";
import type { Timer, World } from "../../../common/ports.js";
import type {
  AttemptOutcome,
  AttemptRequest,
  Cancellation,
  Grant,
  Provider,
  ProviderEvents,
  Upkeep,
} from "../../../lease/provider.js";
import type { Guarantees, HolderHint, ResourceHint } from "../../../lease/types.js";
import { eventLog } from "../../../runtime/log-events.js";
import { silent } from "../../../runtime/logger.js";
import type { Logger } from "../../../runtime/logger.js";
import type { FleaseOptions } from "../types.js";
import { leaseholdError, realError } from "./messages.js";
import type {
  Answer,
  Asked,
  AttemptAnswer,
  Call,
  CallName,
  FromWorker,
  PlainError,
  ToWorker,
  WorkerOrders,
} from "./messages.js";
import { WorkerInspection } from "./worker-inspection.js";
import { ProgramClock, SharedThreads, SharedValidity } from "../../threads.js";
import type { ClockStart } from "../../threads.js";
import { sharedClock, sharedMonotonicMs } from "./steady-clock.js";

/** Interval at which this thread reports that it is alive, ms. */
const signOfLifeEveryMs = 1_000;

/** A thread that does not end within this time after its close message is terminated, ms. */
const closeMsMax = 2_000;

/** A grant that the other thread renews. */
class WorkerGrant implements Grant {
  readonly id: number;
  readonly resource: string;
  readonly token: bigint;
  ended = false;
  /** This thread saw it end early. */
  early = false;
  #disagreed = false;
  readonly #validity: SharedValidity;
  readonly #clock: ProgramClock;

  constructor(resource: string, answer: AttemptAnswer & { kind: "granted" }, clock: ProgramClock) {
    this.id = answer.grant;
    this.resource = resource;
    this.token = answer.token;
    this.#validity = new SharedValidity(answer.validity);
    this.#clock = clock;
  }

  get lossReason(): LossReason | undefined {
    if (this.#disagreed) return "clock-fault";
    const told = this.#validity.lossReason;
    return told === "max-hold" && this.early ? "expired" : told;
  }

  remainingMs(): number {
    if (this.ended) return 0;
    const leftMs = this.#validity.remainingMs(() => this.#clock.read());
    if (leftMs > 0) return leftMs;
    this.ended = true;
    this.#disagreed = this.#clock.read().clocksDisagree;
    this.early = this.#validity.lastsAt(sharedMonotonicMs());
    return 0;
  }
}

interface PendingCall {
  readonly resolve: (value: Answer) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Leases of a Flease client in a thread of its own. Calls are messages; whether a lease is held is read
 * from shared memory, with this thread's own reading of the clocks.
 */
export class WorkerProvider implements Provider {
  readonly guarantees: Guarantees;
  readonly renewsByItself = true;
  readonly inspection = new WorkerInspection({
    call: (name, asked) => this.#call(name, asked),
    post: (message) => this.#post(message),
  });
  readonly #worker: Worker;
  readonly #threads: SharedThreads;
  readonly #world: World;
  readonly #logger: Logger;
  readonly #calls = new Map<number, PendingCall>();
  readonly #grants = new Map<number, WorkerGrant>();
  readonly #exited: Promise<void>;
  #holder: string;
  readonly #clocks: (FromWorker & { type: "opened" })["clocks"];
  #clock: ProgramClock | undefined;
  #nextCall = 1;
  #events: ProviderEvents | undefined;
  #signOfLife: Timer | undefined;
  #gone: LeaseholdError | undefined;
  #closing: Promise<void> | undefined;

  constructor(started: StartedWorker, opened: FromWorker & { type: "opened" }, world: World, logger: Logger) {
    this.#worker = started.worker;
    this.#threads = started.threads;
    this.#world = world;
    this.#logger = logger;
    this.guarantees = opened.guarantees;
    this.#clocks = opened.clocks;
    this.#holder = opened.holder;
    this.#worker.on("message", (message: FromWorker) => this.#receive(message));
    this.#worker.on("error", (error) => this.#failed(error));
    this.#exited = new Promise((resolve) => {
      this.#worker.once("exit", () => {
        this.#failed(undefined);
        resolve();
      });
    });
    this.#giveSignOfLife();
  }

  get holder(): string {
    return this.#holder;
  }

  attach(events: ProviderEvents): void {
    this.#events = events;
  }

  async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    const number = this.#nextCall;
    const { autoRenew = true, maxHoldMs = Infinity } = request.upkeep ?? {};
    const answered = this.#call("attempt", { request: { ...request, upkeep: { autoRenew, maxHoldMs } } });
    if (cancellation !== undefined) {
      cancellation.onCancel = () => this.#post({ type: "cancel", call: number });
      if (cancellation.cancelled) cancellation.onCancel();
    }
    try {
      const answer = await answered;
      if (answer.kind === "held") return answer;
      if (answer.kind === "failed") return { ...answer, error: leaseholdError(answer.error) };
      const grant = new WorkerGrant(request.resource, answer, this.#clockOf(answer.clock));
      this.#grants.set(grant.id, grant);
      return { kind: "granted", grant };
    } catch (error) {
      if (error instanceof LeaseholdError) return { kind: "failed", error };
      throw error;
    } finally {
      if (cancellation !== undefined) cancellation.onCancel = undefined;
    }
  }

  /** One for all grants of an epoch. */
  #clockOf(start: ClockStart): ProgramClock {
    if (this.#clock?.epoch !== start.epoch)
      this.#clock = new ProgramClock(this.#threads, start, this.#clocks, sharedClock);
    return this.#clock;
  }

  renew(grant: Grant): Promise<boolean> {
    return this.#call("renew", { grant: (grant as WorkerGrant).id });
  }

  async keep(grant: Grant, { autoRenew, maxHoldMs }: Upkeep): Promise<void> {
    await this.#call("keep", { grant: (grant as WorkerGrant).id, upkeep: { autoRenew, maxHoldMs } });
  }

  async detach(grant: Grant): Promise<boolean> {
    await this.#call("detach", { grant: (grant as WorkerGrant).id });
    return false;
  }

  /** The order matters (MUST): the grant ends here before the other thread learns of it. */
  async release(grant: Grant): Promise<void> {
    const given = grant as WorkerGrant;
    given.ended = true;
    this.#grants.delete(given.id);
    await this.#call("release", { grant: given.id, early: given.early });
  }

  query(resource: string, timeoutMs: number): Promise<HolderHint> {
    return this.#call("query", { resource, timeoutMs });
  }

  async list(
    prefix: string,
    timeoutMs: number,
    onIncomplete?: (why: string) => void,
  ): Promise<ResourceHint[]> {
    const partial = onIncomplete !== undefined;
    const answer = await this.#call("list", { prefix, timeoutMs, partial });
    if (answer.incomplete !== undefined) onIncomplete?.(answer.incomplete);
    return answer.hints;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#signOfLife?.cancel();
    this.#post({ type: "close" });
    const timer = this.#world.timers.after(closeMsMax, () => void this.#worker.terminate());
    await this.#exited;
    timer.cancel();
  }

  #call<Name extends CallName>(name: Name, asked: Asked<Name>): Promise<Answer<Name>> {
    const number = this.#nextCall++;
    return new Promise((resolve, reject) => {
      if (this.#gone !== undefined) {
        reject(this.#gone);
        return;
      }
      this.#calls.set(number, { resolve: resolve as PendingCall["resolve"], reject });
      this.#post({ ...asked, type: name, call: number } as Call);
    });
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case "answer":
        this.#take(message.call)?.resolve(message.value);
        return;
      case "thrown":
        this.#take(message.call)?.reject(realError(message.error));
        return;
      case "holder":
        this.#holder = message.holder;
        return;
      case "lost":
        this.#lost(message.grant, message.error);
        return;
      case "hint":
        this.#events?.hint(message.resource);
        return;
      case "releaseRequested":
        this.#events?.releaseRequested?.(message.request);
        return;
      case "watched":
        this.inspection.reported(message.watch, message.hint);
        return;
      case "log":
        this.#logger[message.level]?.(message.message, message.event);
        return;
      case "opened":
      case "failed":
        // Happens only before this provider was made.
        return;
    }
  }

  #take(call: number): PendingCall | undefined {
    const pending = this.#calls.get(call);
    this.#calls.delete(call);
    return pending;
  }

  #lost(id: number, plain: PlainError): void {
    const grant = this.#grants.get(id);
    if (grant === undefined) return;
    grant.ended = true;
    const error = realError(plain);
    this.#events?.lost(
      grant,
      error instanceof LeaseLostError ? error : new LeaseLostError(grant.resource, "expired", plain.message),
    );
  }

  /**
   * The thread has exited, expectedly or not: held leases run out by their own clocks, and no new ones can be
   * acquired.
   */
  #failed(error: Error | undefined): void {
    this.#signOfLife?.cancel();
    if (this.#gone !== undefined) return;
    const cause = error === undefined ? "" : `: ${error.message}`;
    this.#gone = new LeaseholdError("CLOSED", `the thread that renews leases has ended${cause}`);
    if (this.#closing === undefined)
      eventLog(this.#logger).log("worker-ended", this.#gone.message, { error: error?.message });
    for (const { reject } of this.#calls.values()) reject(this.#gone);
    this.#calls.clear();
    this.inspection.end(this.#gone);
  }

  #giveSignOfLife(): void {
    this.#threads.signOfLifeMs = sharedMonotonicMs();
    this.#signOfLife = this.#world.timers.after(signOfLifeEveryMs, () => this.#giveSignOfLife());
  }
}

interface StartedWorker {
  readonly worker: Worker;
  readonly threads: SharedThreads;
}

/**
 * Written in this form so that bundlers that support workers find the file. A CommonJS bundle may have no
 * URL.
 */
function startWorker(options: WorkerOptions): Worker {
  try {
    return new Worker(new URL("./lease-worker.js", import.meta.url), options);
  } catch (error) {
    throw noWorkerFile(error);
  }
}

function noWorkerFile(cause: unknown): LeaseholdError {
  const message =
    "renewInWorker runs the file lease-worker.js in a thread, and it is not beside this code: build leasehold/lease-worker to a file of that name there, in a bundle of ES modules (docs/bundlers.md)";
  return new LeaseholdError("UNSUPPORTED", message, { cause });
}

/**
 * Opens a client of a cluster in a thread of its own.
 *
 * @param busyMsMax how long this thread may go without a sign of life before its leases are no longer
 * renewed
 * @throws LeaseholdError as `openFleaseClient`; `CLOSED` when the thread can't be run, `UNSUPPORTED` when
 * its file does not exist.
 */
export function openInWorker(
  addresses: readonly string[],
  options: FleaseOptions,
  world: World,
  busyMsMax: number,
): Promise<WorkerProvider> {
  const { logger = silent, renewInWorker: _, ...rest } = options;
  const threads = new SharedThreads();
  threads.signOfLifeMs = sharedMonotonicMs();
  const workerData: WorkerOrders = { addresses, options: rest, threads: threads.buffer, busyMsMax };
  const worker = startWorker({ workerData, name: "leasehold" });
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => {
      worker.off("error", failed).off("exit", exited).off("message", heard);
      act();
    };
    const failed = (error: NodeJS.ErrnoException) => {
      const message = `the thread that renews could not be started: ${error.message}`;
      settle(() =>
        reject(
          error.code === "MODULE_NOT_FOUND" || error.code === "ERR_MODULE_NOT_FOUND"
            ? noWorkerFile(error)
            : new LeaseholdError("CLOSED", message, { cause: error }),
        ),
      );
    };
    const exited = () => failed(new Error("it ended at once"));
    const heard = (message: FromWorker) => {
      if (message.type === "log") logger[message.level]?.(message.message, message.event);
      else if (message.type === "failed") settle(() => reject(leaseholdError(message.error)));
      else if (message.type === "opened")
        settle(() => {
          resolve(new WorkerProvider({ worker, threads }, message, world, logger));
          // A listener for messages makes the worker keep the process alive.
          worker.unref();
        });
    };
    worker.on("error", failed).on("exit", exited).on("message", heard);
  });
}
