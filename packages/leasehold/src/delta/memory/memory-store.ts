import { LeaseholdError } from "../../lease/errors.js";
import type { Random, Timers } from "../../common/ports.js";
import { sameBytes } from "../record/envelope.js";
import type { Store, StoreAnswer, StoreRequest, StoreTraits } from "../store.js";

/** The default poll interval: reading memory costs nothing. */
const pollMsDefault = 5;

export interface MemoryMediumOptions {
  readonly timers: Timers;
  readonly random: Random;
  readonly name: string;
  readonly kind?: StoreTraits["kind"];
  readonly durable?: boolean;
  readonly bytesMax?: number;
  readonly pollMs?: number;
  readonly delayMs?: number;
}

/**
 * The point at which operations of a stopped medium wait: before they take effect, or between that and their
 * answer.
 */
export type Stall = "requests" | "answers";

/**
 * A store's contents in memory, with switches for faults. Any number of processes of a simulation, a test or
 * this program access it, each through its own {@link MemoryStore}.
 */
export class MemoryMedium {
  readonly traits: StoreTraits;
  /** Operations that took effect, by kind: the cost of an algorithm. */
  readonly performed = { read: 0, replace: 0, put: 0, list: 0 };
  /** Reads that were answered without a record, because nothing was announced. */
  quiet = 0;
  /** The latency of a request, and then of its answer, ms. */
  latencyMs = { request: 0, answer: 0 };
  /** Every operation fails with this error, without effect. */
  failing: LeaseholdError | undefined;
  readonly #timers: Timers;
  readonly #random: Random;
  /**
   * By register; a slotted medium has a cell for each writer, an atomic one a single cell under the empty
   * name.
   */
  #registers = new Map<string, Map<string, Uint8Array>>();
  #id: string;
  #stalled: Stall | undefined;
  #onResume: (() => void)[] = [];
  #announcements = 0;
  /** Incremented by a crash, which ends the operations that began before it. */
  #starts = 0;

  constructor(options: MemoryMediumOptions) {
    this.#timers = options.timers;
    this.#random = options.random;
    this.#id = this.#drawId();
    this.traits = {
      name: options.name,
      kind: options.kind ?? "atomic",
      durable: options.durable ?? true,
      bytesMax: options.bytesMax ?? 4_096,
      pollMs: options.pollMs ?? pollMsDefault,
      delayMs: options.delayMs ?? 100,
    };
  }

  get id(): string {
    return this.#id;
  }

  /** From now on operations stop before or after they take effect, until {@link resume} is called. */
  stall(at: Stall): void {
    this.#stalled = at;
  }

  resume(): void {
    this.#stalled = undefined;
    for (const goOn of this.#onResume.splice(0)) goOn();
  }

  /** Loses everything, including its marker, as if replaced by an empty medium. */
  forget(): void {
    this.#registers = new Map();
    this.#id = this.#drawId();
  }

  /** Loses requests in flight, or their answers; contents survive if the medium is durable. */
  crash(): void {
    this.#starts += 1;
    if (!this.traits.durable) this.forget();
    this.resume();
  }

  /** The cells of a register, for inspection. */
  cells(register: string): Uint8Array[] {
    return [...(this.#registers.get(register)?.values() ?? [])];
  }

  /** Puts arbitrary content into a cell, as another program or a fault of the medium would. */
  plant(register: string, content: Uint8Array, writer = ""): void {
    this.#announcements += 1;
    this.#registers.set(register, new Map(this.#registers.get(register)).set(writer, content));
  }

  async perform(request: StoreRequest, writer: string): Promise<StoreAnswer> {
    const start = this.#starts;
    await this.#travel(this.latencyMs.request);
    while (this.#stalled === "requests") await this.#resumed();
    if (start !== this.#starts) return this.#failed("it crashed before it was reached");
    const answer = this.#answer(request, writer);
    await this.#travel(this.latencyMs.answer);
    while (this.#stalled === "answers") await this.#resumed();
    return start === this.#starts ? answer : this.#failed("it crashed before it answered");
  }

  #answer(request: StoreRequest, writer: string): StoreAnswer {
    if (this.failing !== undefined) return { kind: "failed", error: this.failing };
    this.performed[request.op] += 1;
    const id = this.#id;
    switch (request.op) {
      case "read":
        return this.#read(request.register, request.quietSince);
      case "list":
        return { kind: "registers", id, registers: this.#list(request.prefix, request.registersMax) };
      case "put":
        this.#assertKind("slotted");
        if (request.quiet !== true) this.#announcements += 1;
        return this.#write(request.register, writer, request.next);
      case "replace": {
        this.#assertKind("atomic");
        const cells = this.cells(request.register);
        const [cell] = cells;
        const isExpected =
          cell === undefined || request.expected === undefined
            ? cell === request.expected
            : sameBytes(cell, request.expected);
        if (!isExpected || id !== request.id) return { kind: "conflict", id, cells };
        return this.#write(request.register, "", request.next);
      }
    }
  }

  /** One mark for all registers: an announcement for another register costs a holder a needless read. */
  #read(register: string, quietSince: string | undefined): StoreAnswer {
    const [id, cells] = [this.#id, this.cells(register)];
    if (this.traits.kind === "atomic") return { kind: "cells", id, cells };
    const mark = `${id} ${this.#announcements}`;
    if (mark !== quietSince) return { kind: "cells", id, cells, mark };
    this.quiet += 1;
    return { kind: "quiet", id };
  }

  #write(register: string, slot: string, next: Uint8Array): StoreAnswer {
    if (next.length > this.traits.bytesMax) return this.#failed(`${next.length} bytes are too many`);
    let cells = this.#registers.get(register);
    if (cells === undefined) this.#registers.set(register, (cells = new Map()));
    cells.set(slot, next);
    return { kind: "written", id: this.#id };
  }

  #list(prefix: string, registersMax: number): Map<string, readonly Uint8Array[]> {
    const registers = new Map<string, readonly Uint8Array[]>();
    for (const register of this.#registers.keys()) {
      if (registers.size >= registersMax) break;
      if (register.startsWith(prefix)) registers.set(register, this.cells(register));
    }
    return registers;
  }

  #assertKind(kind: StoreTraits["kind"]): void {
    if (this.traits.kind !== kind) throw new TypeError(`${this.traits.name} is not ${kind}`);
  }

  #failed(why: string): StoreAnswer {
    return {
      kind: "failed",
      error: new LeaseholdError("STORE_UNAVAILABLE", `${this.traits.name}: ${why}`),
    };
  }

  async #travel(ms: number): Promise<void> {
    if (ms <= 0) return;
    await new Promise<void>((resolve) => {
      this.#timers.after(ms, resolve);
    });
  }

  async #resumed(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onResume.push(resolve);
    });
  }

  #drawId(): string {
    return Math.floor(this.#random.next() * 2 ** 48).toString(36);
  }
}

/** One process's access to a {@link MemoryMedium}. */
export class MemoryStore implements Store {
  readonly #medium: MemoryMedium;
  /** The writer whose slot it writes if the medium is slotted. */
  readonly #writer: string;

  constructor(medium: MemoryMedium, writer: string) {
    this.#medium = medium;
    this.#writer = writer;
  }

  get traits(): StoreTraits {
    return this.#medium.traits;
  }

  perform(request: StoreRequest): Promise<StoreAnswer> {
    return this.#medium.perform(request, this.#writer);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
