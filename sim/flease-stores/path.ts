import type { Ask, Protocol } from "../../src/delta/effects.js";
import type { StoreAnswer, StoreRequest } from "../../src/delta/store.js";
import { LeaseholdError } from "../../src/lease/errors.js";
import type { SimClock } from "../kit/clocks.js";
import type { Ground } from "./ground.js";

/** The process whose way it is. */
export interface Traveller {
  readonly isDown: boolean;
  readonly clock: SimClock;
  /** Does something as soon as the process runs. */
  act(body: () => void): void;
}

/** One client's way to the stores: runs visits on the world's queue, with all that may go wrong in between. */
export class StorePath {
  readonly #ground: Ground;
  readonly #client: Traveller;

  constructor(ground: Ground, client: Traveller) {
    this.#ground = ground;
    this.#client = client;
  }

  run<T>(protocol: Protocol<T>, done: (result: T) => void): void {
    this.#resume(protocol, [], done);
  }

  #resume<T>(
    protocol: Protocol<T>,
    answers: readonly (StoreAnswer | undefined)[],
    done: (result: T) => void,
  ): void {
    const { clock } = this.#client;
    const { nowMs } = this.#ground;
    const now = { monotonicMs: clock.monoAt(nowMs), wallMs: clock.wallAt(nowMs) };
    const step = protocol.next({ now, cancelled: false, answers });
    if (step.done === true) {
      // Never from within `send`: a visit takes its time.
      this.#later(0, () => done(step.value));
      return;
    }
    if (step.value.kind === "delay") throw new Error("assertion failed: a visit asks, and waits for nothing");
    this.#ask(step.value, (found) => this.#resume(protocol, found, done));
  }

  #ask(ask: Ask, resume: (answers: readonly (StoreAnswer | undefined)[]) => void): void {
    const { requests, timeoutMs } = ask;
    const store = requests.findIndex((request) => request !== undefined);
    let ended = false;
    const end = (answer: StoreAnswer | undefined) => {
      if (ended) return;
      ended = true;
      resume(requests.map((_, index) => (index === store ? answer : undefined)));
    };
    this.#later(timeoutMs, () => end(undefined));
    const { mistake } = this.#ground.plan;
    const request = requests[store]!;
    if (mistake === "replyBeforeWrite" && request.op === "replace")
      this.#later(0, () => end({ kind: "written", id: this.#ground.knownIds[store]! }));
    this.#send(store, request, (answer) => this.#client.act(() => end(this.#admit(store, answer))));
  }

  #send(store: number, request: StoreRequest, answered: (answer: StoreAnswer) => void): void {
    const { plan, random } = this.#ground;
    const late = () =>
      random.chance(plan.lateness)
        ? random.exponential(plan.settings.ttlMaxMs)
        : random.exponential(plan.latencyMs);
    this.#ground.at(this.#ground.nowMs + late(), () => {
      const target = this.#ground.stores[store]!;
      if (this.#ground.nowMs < target.silentUntilMs && random.chance(0.5)) return;
      const answer = target.perform(this.#asSent(store, request));
      if (this.#client.isDown) this.#ground.counters.ghosts += 1;
      if (this.#ground.nowMs < target.silentUntilMs) return;
      this.#ground.at(this.#ground.nowMs + late(), () => answered(answer));
    });
  }

  /** As the request should be, or with the mistake that it is to be made with. */
  #asSent(store: number, request: StoreRequest): StoreRequest {
    if (this.#ground.plan.mistake !== "staleWriteWins" || request.op !== "replace") return request;
    const { id } = this.#ground.stores[store]!;
    return { ...request, id, expected: this.#ground.stores[store]!.cell(request.register) };
  }

  /** A store that has forgotten says nothing that counts until it has waited. */
  #admit(store: number, answer: StoreAnswer): StoreAnswer {
    if (answer.kind === "failed" || answer.id === this.#ground.knownIds[store]) return answer;
    return { kind: "failed", error: new LeaseholdError("STORE_UNAVAILABLE", "it has forgotten") };
  }

  /** On the client's steady clock, as it is now; a timer may be late, and says nothing about time. */
  #later(ms: number, body: () => void): void {
    const { clock } = this.#client;
    const { nowMs } = this.#ground;
    const dueMs = clock.timeOfMono(clock.monoAt(nowMs) + ms);
    this.#ground.at(Number.isFinite(dueMs) ? dueMs : nowMs + ms, () => this.#client.act(body));
  }
}
