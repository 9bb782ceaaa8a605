import { type BothClocks, readBothClocks } from "../common/both-clocks.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Cancellation } from "../lease/provider.js";
import type { Timer, World } from "../common/ports.js";
import type { Ask, Effect, Protocol } from "./effects.js";
import { Lane, type Operation } from "./lane.js";
import type { Store, StoreAnswer, StoreRequest } from "./store.js";

/** Decides which stores count. Algorithms see answers only through it. */
export interface StoreFilter {
  /** The answer in place of a store that must not be asked now; `undefined` if it may be asked. */
  refusal(store: number, now: BothClocks): StoreAnswer | undefined;
  /** The answer as it counts: one from a store that has forgotten becomes `failed`. */
  admit(store: number, answer: StoreAnswer): StoreAnswer;
}

export interface RunOptions {
  /** Without a filter every store counts. */
  readonly filter?: StoreFilter;
  readonly cancellation?: Cancellation | undefined;
}

/**
 * Runs algorithms on stores and clocks. The same driver serves real and virtual time, because it uses only
 * ports. An answer that arrives after an algorithm has stopped waiting for it reaches only `Ask.late`.
 */
export class Driver {
  readonly world: World;
  readonly #lanes: readonly Lane[];
  readonly #runs = new Set<Run>();

  constructor(stores: readonly Store[], world: World) {
    this.world = world;
    this.#lanes = stores.map((store) => new Lane(store));
  }

  /** A fresh reading of both clocks. */
  now(): BothClocks {
    return readBothClocks(this.world.clock);
  }

  /** Resolves with the algorithm's result, and rejects with what it throws. */
  run<Result>(protocol: Protocol<Result>, options: RunOptions = {}): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const run = new Run(this, this.#lanes, protocol as Protocol<unknown>, options);
      run.onResult = resolve as (result: unknown) => void;
      run.onError = reject;
      this.#runs.add(run);
      run.start();
    });
  }

  /** Called when the run has ended. */
  ended(run: Run): void {
    this.#runs.delete(run);
  }

  /** Cancels all runs, and closes the stores. */
  async close(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close()));
    for (const run of this.#runs) run.cancel();
  }
}

/** One algorithm in execution. */
class Run {
  onResult!: (result: unknown) => void;
  onError!: (error: unknown) => void;
  readonly driver: Driver;
  readonly filter: StoreFilter | undefined;
  readonly #lanes: readonly Lane[];
  readonly #protocol: Protocol<unknown>;
  readonly #cancellation: Cancellation | undefined;
  #isCancelled = false;
  /** The present wait, if a cancellation may end it. */
  #interruptible: Pause | Wait | undefined;
  /** The last question: late answers to an earlier one may complete its wait. */
  #wait: Wait | undefined;

  constructor(driver: Driver, lanes: readonly Lane[], protocol: Protocol<unknown>, options: RunOptions) {
    this.driver = driver;
    this.filter = options.filter;
    this.#lanes = lanes;
    this.#protocol = protocol;
    this.#cancellation = options.cancellation;
  }

  start(): void {
    if (this.#cancellation !== undefined) {
      this.#isCancelled = this.#cancellation.cancelled;
      this.#cancellation.onCancel = () => this.cancel();
    }
    // The first `next` of a generator runs to its first effect and ignores its argument.
    this.resume([]);
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#interruptible?.end();
  }

  /** Resumes the algorithm with the result of its last effect, and starts the next one. */
  resume(answers: readonly (StoreAnswer | undefined)[]): void {
    this.#interruptible = undefined;
    let step: IteratorResult<Effect, unknown>;
    try {
      step = this.#protocol.next({ now: this.driver.now(), cancelled: this.#isCancelled, answers });
    } catch (error) {
      this.#end();
      this.onError(error);
      return;
    }
    if (step.done === true) {
      this.#end();
      this.onResult(step.value);
    } else if (step.value.kind === "delay") {
      this.#delay(step.value.delayMs);
    } else {
      this.#ask(step.value);
    }
  }

  /** An earlier question has received a late answer. */
  late(): void {
    this.#wait?.endIfOver();
  }

  #end(): void {
    this.driver.ended(this);
    if (this.#cancellation !== undefined) this.#cancellation.onCancel = undefined;
  }

  #delay(delayMs: number): void {
    if (delayMs === 0) {
      this.resume([]);
      return;
    }
    // A timer even for an immediate end: a loop of cancelled delays must not starve the process.
    const pause = new Pause(this, this.#isCancelled ? 0 : delayMs);
    if (!this.#isCancelled) this.#interruptible = pause;
  }

  #ask(ask: Ask): void {
    const wait = new Wait(ask, this);
    this.#wait = wait;
    wait.begin(this.#lanes);
    const isRead = ask.requests.every((request) => request?.op !== "replace" && request?.op !== "put");
    if (!isRead) return;
    this.#interruptible = wait;
    if (this.#isCancelled) wait.end();
  }
}

/** One delay. It ends once. */
class Pause {
  readonly #run: Run;
  readonly #timer: Timer;

  constructor(run: Run, delayMs: number) {
    this.#run = run;
    this.#timer = run.driver.world.timers.after(delayMs, () => this.end());
  }

  end(): void {
    this.#timer.cancel();
    this.#run.resume([]);
  }
}

/** The abort reason for stores. Shared, because creating an error costs more than the question. */
const gaveUp = new LeaseholdError("STORE_UNAVAILABLE", "the caller gave up");

/** One question to several stores. It ends once: with enough answers, with all of them, or at its timeout. */
class Wait implements RequestOwner {
  readonly #ask: Ask;
  readonly #run: Run;
  readonly #answers: (StoreAnswer | undefined)[];
  /** The requests that were not sent at once; usually none. */
  #unsent: PendingRequest[] | undefined;
  #controller: AbortController | undefined;
  #pending = 0;
  #timer: Timer | undefined;
  #hasBegun = false;
  #hasEnded = false;
  #hasGivenUp = false;

  constructor(ask: Ask, run: Run) {
    this.#ask = ask;
    this.#run = run;
    this.#answers = ask.requests.map(() => undefined);
  }

  begin(lanes: readonly Lane[]): void {
    const { filter, driver } = this.#run;
    const { requests, timeoutMs } = this.#ask;
    for (const request of requests) if (request !== undefined) this.#pending += 1;
    this.#timer = driver.world.timers.after(timeoutMs, () => this.#giveUp());
    const now = driver.now();
    requests.forEach((request, store) => {
      if (request === undefined) return;
      const refusal = filter?.refusal(store, now);
      if (refusal === undefined) this.#send(lanes[store]!, request, store);
      else this.#take(store, refusal);
    });
    this.#hasBegun = true;
    // Asynchronous: an algorithm whose questions are all refused must not recurse.
    if (this.#isOver()) void Promise.resolve().then(() => this.end());
  }

  endIfOver(): void {
    if (this.#hasBegun && !this.#hasEnded && this.#isOver()) this.end();
  }

  /** Stops waiting; requests in flight continue. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#run.resume(this.#answers.slice());
  }

  /** Created for the first store that reads it: not all stores do, and it costs more than a question. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#hasGivenUp) this.#controller.abort(gaveUp);
    return this.#controller.signal;
  }

  answered(store: number, answer: StoreAnswer): void {
    this.#take(store, this.#run.filter?.admit(store, answer) ?? answer);
  }

  #send(lane: Lane, request: StoreRequest, store: number): void {
    const pending = new PendingRequest(this, lane, request, store);
    if (lane.send(pending)) (this.#unsent ??= []).push(pending);
  }

  #take(store: number, answer: StoreAnswer): void {
    this.#pending -= 1;
    if (this.#pending === 0) this.#timer?.cancel();
    if (this.#hasEnded) {
      if (this.#ask.late === undefined) return;
      this.#ask.late(store, answer, this.#run.driver.now());
      this.#run.late();
      return;
    }
    this.#answers[store] = answer;
    this.endIfOver();
  }

  #isOver(): boolean {
    return this.#pending === 0 || this.#ask.enough(this.#answers);
  }

  /** The timeout: aborts the requests at the stores, and drops those that were not sent. */
  #giveUp(): void {
    this.#hasGivenUp = true;
    for (const pending of this.#unsent ?? []) pending.drop();
    this.#controller?.abort(gaveUp);
    this.end();
  }
}

/** The question that a request to one store belongs to. */
interface RequestOwner {
  readonly signal: AbortSignal;
  answered(store: number, answer: StoreAnswer): void;
}

/** The request of a question to one store. */
class PendingRequest implements Operation {
  readonly request: StoreRequest;
  readonly #owner: RequestOwner;
  readonly #lane: Lane;
  readonly #store: number;

  constructor(owner: RequestOwner, lane: Lane, request: StoreRequest, store: number) {
    this.request = request;
    this.#owner = owner;
    this.#lane = lane;
    this.#store = store;
  }

  get signal(): AbortSignal {
    return this.#owner.signal;
  }

  done(answer: StoreAnswer): void {
    this.#owner.answered(this.#store, answer);
  }

  drop(): void {
    this.#lane.drop(this);
  }
}
