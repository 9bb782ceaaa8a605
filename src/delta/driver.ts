import { type BothClocks, readBothClocks } from "../common/both-clocks.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Cancellation } from "../lease/provider.js";
import type { Timer, World } from "../common/ports.js";
import type { Ask, Effect, Protocol } from "./effects.js";
import { Lane, type Operation } from "./lane.js";
import type { Store, StoreAnswer } from "./store.js";

/** Decides which stores count: what it makes of an answer is what an algorithm sees. */
export interface Gate {
  /** The answer of a store that must not be asked now; `undefined` for one that may be. */
  refusal(store: number, now: BothClocks): StoreAnswer | undefined;
  /** The answer as it counts: one of a store that has forgotten is a `failed`. */
  admit(store: number, answer: StoreAnswer): StoreAnswer;
}

export interface RunOptions {
  /** Without one every store counts. */
  readonly gate?: Gate;
  readonly cancellation?: Cancellation | undefined;
}

/**
 * Runs algorithms over stores and clocks. The same driver serves the real world and virtual time: it knows both only as
 * ports. Answers that come after an algorithm has stopped waiting for them change nothing but what it says itself (`Ask.late`).
 */
export class Driver {
  readonly world: World;
  readonly #lanes: readonly Lane[];
  readonly #runs = new Set<Run>();

  constructor(stores: readonly Store[], world: World) {
    this.world = world;
    this.#lanes = stores.map((store) => new Lane(store));
  }

  /** A fresh look at both clocks. */
  now(): BothClocks {
    return readBothClocks(this.world.clock);
  }

  /** Resolves with what the algorithm returns, and rejects with what it throws. */
  run<Result>(protocol: Protocol<Result>, options: RunOptions = {}): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const run = new Run(this, this.#lanes, protocol as Protocol<unknown>, options);
      this.#runs.add(run);
      run.onEnd = () => this.#runs.delete(run);
      run.onResult = (result) => resolve(result as Result);
      run.onError = reject;
      run.start();
    });
  }

  /** Ends what is under way as if it had been cancelled, and closes the stores. */
  async close(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close()));
    for (const run of this.#runs) run.cancel();
  }
}

/** One algorithm on its way. */
class Run {
  onEnd: () => void = () => undefined;
  onResult: (result: unknown) => void = () => undefined;
  onError: (error: unknown) => void = () => undefined;
  readonly #driver: Driver;
  readonly #lanes: readonly Lane[];
  readonly #protocol: Protocol<unknown>;
  readonly #gate: Gate | undefined;
  readonly #cancellation: Cancellation | undefined;
  #isCancelled = false;
  /** Ends the present wait if a cancellation may. */
  #interrupt: (() => void) | undefined;
  /** The last question: what is late for an earlier one may be enough for it. */
  #wait: Wait | undefined;

  constructor(driver: Driver, lanes: readonly Lane[], protocol: Protocol<unknown>, options: RunOptions) {
    this.#driver = driver;
    this.#lanes = lanes;
    this.#protocol = protocol;
    this.#gate = options.gate;
    this.#cancellation = options.cancellation;
  }

  start(): void {
    if (this.#cancellation !== undefined) {
      this.#isCancelled = this.#cancellation.cancelled;
      this.#cancellation.onCancel = () => this.cancel();
    }
    // A generator's first `next` only brings it to its first effect: what it is given there nobody reads.
    this.resume([]);
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#interrupt?.();
  }

  /** Hands the algorithm what came of its last effect, and starts the next. */
  resume(answers: readonly (StoreAnswer | undefined)[]): void {
    this.#interrupt = undefined;
    let step: IteratorResult<Effect, unknown>;
    try {
      step = this.#protocol.next({ now: this.#driver.now(), cancelled: this.#isCancelled, answers });
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

  #end(): void {
    this.onEnd();
    if (this.#cancellation !== undefined) this.#cancellation.onCancel = undefined;
  }

  #delay(delayMs: number): void {
    if (delayMs === 0) {
      this.resume([]);
      return;
    }
    // With a timer even if it is over at once: a loop of cancelled delays must not starve the process.
    const end = () => {
      timer.cancel();
      this.resume([]);
    };
    const timer = this.#driver.world.timers.after(this.#isCancelled ? 0 : delayMs, end);
    if (!this.#isCancelled) this.#interrupt = end;
  }

  #ask(ask: Ask): void {
    const wait = new Wait(
      ask,
      this.#driver,
      this.#gate,
      (answers) => this.resume(answers),
      () => this.#wait?.endIfOver(),
    );
    this.#wait = wait;
    wait.begin(this.#lanes);
    const isRead = ask.requests.every((request) => request?.op !== "replace" && request?.op !== "put");
    if (!isRead) return;
    this.#interrupt = () => wait.end();
    if (this.#isCancelled) wait.end();
  }
}

/** Why stores are to give up. One for all: to make one costs more than the question. */
const gaveUp = new LeaseholdError("STORE_UNAVAILABLE", "its caller has given up");

/** One question to several stores: ends once, with enough answers, all, or at its time. */
class Wait {
  readonly #ask: Ask;
  readonly #driver: Driver;
  readonly #gate: Gate | undefined;
  readonly #onEnd: (answers: readonly (StoreAnswer | undefined)[]) => void;
  readonly #onLate: () => void;
  readonly #answers: (StoreAnswer | undefined)[];
  readonly #operations: { readonly lane: Lane; readonly operation: Operation }[] = [];
  readonly #controller = new AbortController();
  #pending = 0;
  #timer: Timer | undefined;
  #hasBegun = false;
  #hasEnded = false;

  constructor(
    ask: Ask,
    driver: Driver,
    gate: Gate | undefined,
    onEnd: (answers: readonly (StoreAnswer | undefined)[]) => void,
    onLate: () => void,
  ) {
    this.#ask = ask;
    this.#driver = driver;
    this.#gate = gate;
    this.#onEnd = onEnd;
    this.#onLate = onLate;
    this.#answers = ask.requests.map(() => undefined);
  }

  begin(lanes: readonly Lane[]): void {
    this.#pending = this.#ask.requests.filter((request) => request !== undefined).length;
    this.#timer = this.#driver.world.timers.after(this.#ask.timeoutMs, () => this.#giveUp());
    const now = this.#driver.now();
    this.#ask.requests.forEach((request, store) => {
      if (request === undefined) return;
      const refusal = this.#gate?.refusal(store, now);
      if (refusal === undefined) this.#send(lanes[store]!, request, store);
      else this.#take(store, refusal);
    });
    this.#hasBegun = true;
    // Not from within this call: an algorithm whose every question is refused must not recurse.
    if (this.#isOver()) void Promise.resolve().then(() => this.end());
  }

  endIfOver(): void {
    if (this.#hasBegun && !this.#hasEnded && this.#isOver()) this.end();
  }

  /** Stops waiting; what is under way goes on. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#onEnd(this.#answers.slice());
  }

  #send(lane: Lane, request: NonNullable<Ask["requests"][number]>, store: number): void {
    const done = (answer: StoreAnswer) => this.#take(store, this.#gate?.admit(store, answer) ?? answer);
    const operation: Operation = { request, signal: this.#controller.signal, done };
    this.#operations.push({ lane, operation });
    lane.send(operation);
  }

  #take(store: number, answer: StoreAnswer): void {
    this.#pending -= 1;
    if (this.#pending === 0) this.#timer?.cancel();
    if (this.#hasEnded) {
      if (this.#ask.late === undefined) return;
      this.#ask.late(store, answer, this.#driver.now());
      this.#onLate();
      return;
    }
    this.#answers[store] = answer;
    this.endIfOver();
  }

  #isOver(): boolean {
    return this.#pending === 0 || this.#ask.enough(this.#answers);
  }

  /** The time is up: asks the stores to give up, too, and sends nothing that still waits. */
  #giveUp(): void {
    for (const { lane, operation } of this.#operations) lane.drop(operation);
    this.#controller.abort(gaveUp);
    this.end();
  }
}
