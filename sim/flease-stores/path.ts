import type { Ask, Protocol } from "../../src/delta/effects.js";
import type { StoreAnswer, StoreRequest } from "../../src/delta/store.js";
import { LeaseholdError } from "../../src/lease/errors.js";
import type { GridClient } from "./client.js";
import type { GridWorld } from "./world.js";

/** One client's way to the stores: runs the grid's protocols on the world's queue, with all that may go wrong in between. */
export class StorePath {
  readonly #world: GridWorld;
  readonly #client: GridClient;

  constructor(world: GridWorld, client: GridClient) {
    this.#world = world;
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
    const { mono: monotonicMs, wall: wallMs } = this.#client.now();
    const step = protocol.next({ now: { monotonicMs, wallMs }, cancelled: false, answers });
    if (step.done === true) {
      // Never from within `send`: a visit takes its time.
      this.#later(0, () => done(step.value));
      return;
    }
    if (step.value.kind === "delay")
      throw new Error("assertion failed: the grid asks, and waits for nothing");
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
    const { mistake } = this.#world.plan;
    const request = requests[store]!;
    if (mistake === "replyBeforeWrite" && request.op === "replace")
      this.#later(0, () => end({ kind: "written", id: this.#world.knownIds[store]! }));
    this.#send(store, request, (answer) => this.#client.act(() => end(this.#admit(store, answer))));
  }

  #send(store: number, request: StoreRequest, answered: (answer: StoreAnswer) => void): void {
    const { plan, random } = this.#world;
    const late = () =>
      random.chance(plan.lateness)
        ? random.exponential(plan.settings.ttlMaxMs)
        : random.exponential(plan.latencyMs);
    this.#world.at(this.#world.nowMs + late(), () => {
      const target = this.#world.stores[store]!;
      if (this.#world.nowMs < target.silentUntilMs && random.chance(0.5)) return;
      const answer = target.perform(this.#asSent(store, request));
      if (this.#client.isDown) this.#world.counters.ghosts += 1;
      if (this.#world.nowMs < target.silentUntilMs) return;
      this.#world.at(this.#world.nowMs + late(), () => answered(answer));
    });
  }

  /** As the request should be, or with the mistake that it is to be made with. */
  #asSent(store: number, request: StoreRequest): StoreRequest {
    if (this.#world.plan.mistake !== "staleWriteWins" || request.op !== "replace") return request;
    const { id } = this.#world.stores[store]!;
    return { ...request, id, expected: this.#world.stores[store]!.cell(request.register) };
  }

  /** A store that has forgotten says nothing that counts until it has waited. */
  #admit(store: number, answer: StoreAnswer): StoreAnswer {
    if (answer.kind === "failed" || answer.id === this.#world.knownIds[store]) return answer;
    return { kind: "failed", error: new LeaseholdError("STORE_UNAVAILABLE", "it has forgotten") };
  }

  /** On the client's steady clock, as it is now; a timer may be late, and says nothing about time. */
  #later(ms: number, body: () => void): void {
    const { clock } = this.#client;
    const { nowMs } = this.#world;
    const dueMs = clock.timeOfMono(clock.monoAt(nowMs) + ms);
    this.#world.at(Number.isFinite(dueMs) ? dueMs : nowMs + ms, () => this.#client.act(body));
  }
}
