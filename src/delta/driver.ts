import { type BothClocks, readBothClocks } from "../common/both-clocks.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Cancellation } from "../lease/provider.js";
import type { Timer, World } from "../common/ports.js";
import type { Ask, Effect, Protocol } from "./effects.js";
import { Lane, type Operation } from "./lane.js";
import type { Store, StoreAnswer, StoreRequest } from "./store.js";

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
      run.onResult = resolve as (result: unknown) => void;
      run.onError = reject;
      this.#runs.add(run);
      run.start();
    });
  }

  /** It is under way no more. */
  ended(run: Run): void {
    this.#runs.delete(run);
  }

  /** Ends what is under way as if it had been cancelled, and closes the stores. */
  async close(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close()));
    for (const run of this.#runs) run.cancel();
  }
}

/** One algorithm on its way. */
class Run {
  onResult!: (result: unknown) => void;
  onError!: (error: unknown) => void;
  readonly driver: Driver;
  readonly gate: Gate | undefined;
  readonly #lanes: readonly Lane[];
  readonly #protocol: Protocol<unknown>;
  readonly #cancellation: Cancellation | undefined;
  #isCancelled = false;
  /** The present wait, if a cancellation may end it. */
  #interruptible: Pause | Wait | undefined;
  /** The last question: what is late for an earlier one may be enough for it. */
  #wait: Wait | undefined;

  constructor(driver: Driver, lanes: readonly Lane[], protocol: Protocol<unknown>, options: RunOptions) {
    this.driver = driver;
    this.gate = options.gate;
    this.#lanes = lanes;
    this.#protocol = protocol;
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
    this.#interruptible?.end();
  }

  /** Hands the algorithm what came of its last effect, and starts the next. */
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

  /** An earlier question was told something late. */
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
    // With a timer even if it is over at once: a loop of cancelled delays must not starve the process.
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

/** One delay: ends once. */
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

/** Why stores are to give up. One for all: to make one costs more than the question. */
const gaveUp = new LeaseholdError("STORE_UNAVAILABLE", "its caller has given up");

/** One question to several stores: ends once, with enough answers, all, or at its time. */
class Wait implements Asker {
  readonly #ask: Ask;
  readonly #run: Run;
  readonly #answers: (StoreAnswer | undefined)[];
  /** What was not sent at once: seldom any. */
  #unsent: Question[] | undefined;
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
    const { gate, driver } = this.#run;
    const { requests, timeoutMs } = this.#ask;
    for (const request of requests) if (request !== undefined) this.#pending += 1;
    this.#timer = driver.world.timers.after(timeoutMs, () => this.#giveUp());
    const now = driver.now();
    requests.forEach((request, store) => {
      if (request === undefined) return;
      const refusal = gate?.refusal(store, now);
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
    this.#run.resume(this.#answers.slice());
  }

  /** Made for the first store that wants it: not all do, and it costs more than a question. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#hasGivenUp) this.#controller.abort(gaveUp);
    return this.#controller.signal;
  }

  answered(store: number, answer: StoreAnswer): void {
    this.#take(store, this.#run.gate?.admit(store, answer) ?? answer);
  }

  #send(lane: Lane, request: StoreRequest, store: number): void {
    const question = new Question(this, lane, request, store);
    if (lane.send(question)) (this.#unsent ??= []).push(question);
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

  /** The time is up: asks the stores to give up, too, and sends nothing that still waits. */
  #giveUp(): void {
    this.#hasGivenUp = true;
    for (const question of this.#unsent ?? []) question.drop();
    this.#controller?.abort(gaveUp);
    this.end();
  }
}

/** What a question to one store is part of. */
interface Asker {
  readonly signal: AbortSignal;
  answered(store: number, answer: StoreAnswer): void;
}

/** The part of a question that goes to one store. */
class Question implements Operation {
  readonly request: StoreRequest;
  readonly #asker: Asker;
  readonly #lane: Lane;
  readonly #store: number;

  constructor(asker: Asker, lane: Lane, request: StoreRequest, store: number) {
    this.request = request;
    this.#asker = asker;
    this.#lane = lane;
    this.#store = store;
  }

  get signal(): AbortSignal {
    return this.#asker.signal;
  }

  done(answer: StoreAnswer): void {
    this.#asker.answered(this.#store, answer);
  }

  drop(): void {
    this.#lane.drop(this);
  }
}
