import type { Ask, Effect, Protocol, Reading } from "../../src/delta/effects.js";
import type { Farm } from "../../src/delta/farm/farm.js";
import type { StoreAnswer } from "../../src/delta/store.js";
import { LeaseholdError } from "../../src/lease/errors.js";
import type { SimClock } from "../kit/clocks.js";

/** What a process needs of its world. */
export interface Surroundings {
  readonly nowMs: number;
  /** What a protocol of this process threw. */
  failed(from: SimParty, error: LeaseholdError): void;
  /** Calls `body` at a true time. */
  at(timeMs: number, body: () => void): void;
  /** The process crashes while it sends these: tells which stores are still reached. `undefined` when it does not. */
  tears(from: SimParty, requests: Ask["requests"]): ((store: number) => boolean) | undefined;
  /** Sends a request on its way; `answer` is called with what comes of it, if anything ever does. */
  send(
    from: SimParty,
    store: number,
    request: Ask["requests"][number] & object,
    answer: (answer: StoreAnswer) => void,
  ): void;
}

/** A process with clocks of its own, which may be stopped for a while, or crash. It runs any number of protocols. */
export class SimParty {
  /** Name and incarnation: the writer of its records. */
  readonly writer: string;
  readonly index: number;
  readonly clock: SimClock;
  readonly farm: Farm;
  isAlive = true;
  pausedUntilMs = 0;
  readonly #world: Surroundings;

  constructor(world: Surroundings, index: number, writer: string, clock: SimClock, farm: Farm) {
    this.#world = world;
    this.index = index;
    this.writer = writer;
    this.clock = clock;
    this.farm = farm;
  }

  /** What its clocks show now. */
  look(): Reading {
    const { nowMs } = this.#world;
    return { monotonicMs: this.clock.monoAt(nowMs), wallMs: this.clock.wallAt(nowMs) };
  }

  /**
   * Runs a protocol to its end, unless the process crashes before. With the farm as the gate, as in production; what looks after the farm
   * itself goes without.
   */
  run<Result>(
    protocol: Protocol<Result>,
    onResult: (result: Result) => void = () => undefined,
    isGated = true,
  ): void {
    let lookAgain = () => {};
    const resume = (answers: readonly (StoreAnswer | undefined)[]): void => {
      for (let given = answers; ; given = []) {
        const step = protocol.next({ now: this.look(), cancelled: false, answers: given });
        if (step.done === true) {
          onResult(step.value);
          return;
        }
        if (step.value.kind === "delay" && step.value.delayMs <= 0) continue;
        const onEnd = (found: readonly (StoreAnswer | undefined)[]) => this.#guarded(() => resume(found));
        lookAgain = this.#begin(step.value, isGated, onEnd, () => lookAgain());
        return;
      }
    };
    this.#guarded(() => resume([]));
  }

  /** Looks after the farm for as long as the process lives, and begins its program when the farm has been found. */
  tend(everyMs: number, onFounded: () => void): void {
    let isLooking = false;
    let hasBegun = false;
    const turn = () => {
      const look = isLooking ? undefined : this.farm.lookDue(this.look());
      if (look !== undefined) {
        isLooking = true;
        this.run(look, () => (isLooking = false), false);
      }
      if (this.farm.isFounded && !hasBegun) {
        hasBegun = true;
        onFounded();
      }
      this.after(everyMs, turn);
    };
    turn();
  }

  /** After `delayMs` on its own steady clock. */
  after(delayMs: number, body: () => void): void {
    const { monotonicMs } = this.look();
    this.#world.at(this.clock.timeOfMono(monotonicMs + delayMs), () => this.#awake(body));
  }

  /** Returns what looks again whether a question has been answered. */
  #begin(
    effect: Effect,
    isGated: boolean,
    resume: (answers: readonly (StoreAnswer | undefined)[]) => void,
    onLate: () => void,
  ): () => void {
    if (effect.kind === "delay") {
      this.after(effect.delayMs, () => resume([]));
      return () => {};
    }
    const answers: (StoreAnswer | undefined)[] = effect.requests.map(() => undefined);
    let pending = effect.requests.filter((request) => request !== undefined).length;
    let over = false;
    const end = () => {
      if (over) return;
      over = true;
      resume(answers.slice());
    };
    const endIfOver = () => {
      if (!over && (pending === 0 || effect.enough(answers))) end();
    };
    const take = (store: number, answer: StoreAnswer) => {
      pending -= 1;
      if (over) {
        if (effect.late === undefined) return;
        effect.late(store, answer, this.look());
        onLate();
        return;
      }
      answers[store] = answer;
      endIfOver();
    };
    const reached = this.#world.tears(this, effect.requests);
    for (const [store, request] of effect.requests.entries()) {
      if (request === undefined || reached?.(store) === false) continue;
      const refusal = isGated ? this.farm.refusal(store, this.look()) : undefined;
      if (refusal !== undefined) this.after(0, () => take(store, refusal));
      else
        this.#world.send(this, store, request, (answer) =>
          this.#awake(() => take(store, isGated ? this.farm.admit(store, answer) : answer)),
        );
    }
    this.after(Math.max(0, effect.timeoutMs), end);
    return endIfOver;
  }

  #guarded(body: () => void): void {
    try {
      body();
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      this.#world.failed(this, error);
    }
  }

  /** Runs something when the process is not stopped, and never after a crash. */
  #awake(body: () => void): void {
    if (!this.isAlive) return;
    const { pausedUntilMs } = this;
    if (this.#world.nowMs < pausedUntilMs) this.#world.at(pausedUntilMs, () => this.#awake(body));
    else body();
  }
}
