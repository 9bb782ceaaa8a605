import { sameBytes } from "../../src/delta/record/envelope.js";
import type { StoreAnswer, StoreRequest } from "../../src/delta/store.js";

/** A store of a simulated run: cells in memory, silence, and loss of memory. */
export class SimStore {
  readonly #cells = new Map<string, Uint8Array>();
  #id = 1;
  /** Not reached before this true time. */
  silentUntilMs = 0;
  /** Since this true time nothing has been forgotten. */
  forgotAtMs = -Infinity;
  conflicts = 0;

  get id(): string {
    return String(this.#id);
  }

  cell(register: string): Uint8Array | undefined {
    return this.#cells.get(register);
  }

  /** It loses all, and its marker with it. */
  forget(nowMs: number): void {
    this.#cells.clear();
    this.#id += 1;
    this.forgotAtMs = nowMs;
  }

  perform(request: StoreRequest): StoreAnswer {
    const { id } = this;
    if (request.op !== "read" && request.op !== "replace")
      throw new Error(`assertion failed: nobody asks for ${request.op} here`);
    const cell = this.#cells.get(request.register);
    const cells = cell === undefined ? [] : [cell];
    if (request.op === "read") return { kind: "cells", id, cells };
    const { expected, next } = request;
    const same = cell === undefined || expected === undefined ? cell === expected : sameBytes(cell, expected);
    if (!same || request.id !== id) {
      this.conflicts += 1;
      return { kind: "conflict", id, cells };
    }
    this.#cells.set(request.register, next);
    return { kind: "written", id };
  }
}
