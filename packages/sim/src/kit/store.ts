import { sameBytes } from "leasehold/inner/delta/record/envelope.js";
import { decodeFarmCell, mergeFarmCells } from "leasehold/inner/delta/farm/farm-cell.js";
import {
  farmRegister,
  type StoreAnswer,
  type StoreRequest,
  type StoreTraits,
} from "leasehold/inner/delta/store.js";

/**
 * The content of one simulated store, and its handling of a request at the moment in which that takes effect.
 */
export class SimStore {
  readonly kind: StoreTraits["kind"];
  readonly name: string;
  /** Requests stop here until then: true time. */
  stalledUntilMs = 0;
  /** The store is unreachable before this true time. */
  silentUntilMs = 0;
  /** From this true time on it never answers. */
  silentFromMs = Infinity;
  /** The true time of its last loss. */
  forgotAtMs = -Infinity;
  conflicts = 0;
  /** Whether it counts, cached. `undefined`: unknown. */
  #counts: boolean | undefined;
  #registers = new Map<string, Map<string, Uint8Array>>();
  #generation = 0;
  /** The number of announcements, by resource: an announcement for one of its registers is one for all. */
  readonly #announced = new Map<string, number>();
  /** The time at which the last write of a slot takes effect: writes of one slot keep their order. */
  readonly #lastPutMs = new Map<string, number>();

  constructor(kind: StoreTraits["kind"], name: string) {
    this.kind = kind;
    this.name = name;
  }

  get id(): string {
    return `${this.name}.${this.#generation}`;
  }

  /** Loses everything, including its marker. */
  forget(nowMs: number): void {
    this.#registers = new Map();
    this.#generation += 1;
    this.#counts = undefined;
    this.forgotAtMs = nowMs;
  }

  /** The true time at which a request that arrives then takes effect. */
  inOrder(request: StoreRequest, writer: string, effectMs: number): number {
    if (request.op !== "put") return effectMs;
    const slot = `${writer} ${request.register}`;
    const ordered = Math.max(effectMs, this.#lastPutMs.get(slot) ?? 0);
    this.#lastPutMs.set(slot, ordered);
    return ordered;
  }

  /** The content of a register. */
  cells(register: string): readonly Uint8Array[] {
    return [...(this.#registers.get(register)?.values() ?? [])];
  }

  /** By the store's own content: it has not forgotten, or has been waited for. */
  get counts(): boolean {
    if (this.#counts === undefined) {
      const cell = mergeFarmCells(this.cells(farmRegister).map(decodeFarmCell));
      this.#counts = cell?.id === this.id && cell.state === "ready";
    }
    return this.#counts;
  }

  perform(request: StoreRequest, writer: string): StoreAnswer {
    const { id } = this;
    if (request.op === "list") return { kind: "registers", id, registers: new Map() };
    const cells = this.cells(request.register);
    if (request.op === "read") return this.#read(cells, request.register, request.quietSince);
    if (request.op === "put") {
      if (request.quiet !== true) this.#announce(request.register);
      return this.#write(request.register, writer, request.next);
    }
    const [cell] = cells;
    const { expected } = request;
    const isExpected =
      cell === undefined || expected === undefined ? cell === expected : sameBytes(cell, expected);
    if (!isExpected || id !== request.id) {
      this.conflicts += 1;
      return { kind: "conflict", id, cells };
    }
    return this.#write(request.register, "", request.next);
  }

  #read(cells: readonly Uint8Array[], register: string, quietSince: string | undefined): StoreAnswer {
    const { id } = this;
    if (this.kind === "atomic") return { kind: "cells", id, cells };
    const mark = `${id} ${this.#announced.get(resourceOf(register)) ?? 0}`;
    return mark === quietSince ? { kind: "quiet", id } : { kind: "cells", id, cells, mark };
  }

  #announce(register: string): void {
    const resource = resourceOf(register);
    this.#announced.set(resource, (this.#announced.get(resource) ?? 0) + 1);
  }

  #write(register: string, slot: string, next: Uint8Array): StoreAnswer {
    let slots = this.#registers.get(register);
    if (slots === undefined) this.#registers.set(register, (slots = new Map()));
    slots.set(slot, next);
    if (register === farmRegister) this.#counts = undefined;
    return { kind: "written", id: this.id };
  }
}

/** A store that has forgotten, and does not count yet. */
export function uncountedIn(stores: readonly SimStore[]): SimStore | undefined {
  if (stores.every(({ forgotAtMs }) => forgotAtMs === -Infinity)) return undefined;
  return stores.find((store) => !store.counts);
}

const resourceOf = (register: string): string => register.slice(register.indexOf("/") + 1);
