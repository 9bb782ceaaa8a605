import type { Ask, Effect, Protocol, Reading } from "../../delta/effects.js";
import type { StoreAnswer } from "../../delta/store.js";
import type { SimClock } from "../clocks.js";
import type { SimFarm } from "./farm.js";

/** What a process needs of its world. */
export interface Surroundings {
  readonly nowMs: number;
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
  readonly farm: SimFarm;
  isAlive = true;
  pausedUntilMs = 0;
  readonly #world: Surroundings;

  constructor(world: Surroundings, index: number, writer: string, clock: SimClock, farm: SimFarm) {
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

  /** Runs a protocol to its end, unless the process crashes before. */
  run<Result>(protocol: Protocol<Result>, onResult: (result: Result) => void = () => undefined): void {
    const resume = (answers: readonly (StoreAnswer | undefined)[]): void => {
      for (let given = answers; ; given = []) {
        const step = protocol.next({ now: this.look(), cancelled: false, answers: given });
        if (step.done === true) {
          onResult(step.value);
          return;
        }
        if (step.value.kind === "delay" && step.value.delayMs <= 0) continue;
        this.#begin(step.value, resume);
        return;
      }
    };
    resume([]);
  }

  /** After `delayMs` on its own steady clock. */
  after(delayMs: number, body: () => void): void {
    const { monotonicMs } = this.look();
    this.#world.at(this.clock.timeOfMono(monotonicMs + delayMs), () => this.#awake(body));
  }

  #begin(effect: Effect, resume: (answers: readonly (StoreAnswer | undefined)[]) => void): void {
    if (effect.kind === "delay") {
      this.after(effect.delayMs, () => resume([]));
      return;
    }
    const answers: (StoreAnswer | undefined)[] = effect.requests.map(() => undefined);
    let pending = effect.requests.filter((request) => request !== undefined).length;
    let over = false;
    const end = () => {
      if (over) return;
      over = true;
      resume(answers.slice());
    };
    const reached = this.#world.tears(this, effect.requests);
    for (const [store, request] of effect.requests.entries()) {
      if (request === undefined || reached?.(store) === false) continue;
      this.#world.send(this, store, request, (answer) =>
        this.#awake(() => {
          const counted = this.farm.admit(store, answer, this.look().monotonicMs);
          pending -= 1;
          if (over) {
            effect.late?.(store, counted, this.look());
            return;
          }
          answers[store] = counted;
          if (pending === 0 || effect.enough(answers)) end();
        }),
      );
    }
    this.after(Math.max(0, effect.timeoutMs), end);
  }

  /** Runs something when the process is not stopped, and never after a crash. */
  #awake(body: () => void): void {
    if (!this.isAlive) return;
    const { pausedUntilMs } = this;
    if (this.#world.nowMs < pausedUntilMs) this.#world.at(pausedUntilMs, () => this.#awake(body));
    else body();
  }
}
