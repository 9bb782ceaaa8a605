import { sameBytes } from "../../delta/record/envelope.js";
import type { Store, StoreAnswer } from "../../delta/store.js";

/** The medium under test. Each case gets an empty one, or at least its own names. */
export interface StoreGround {
  readonly kind: Store["traits"]["kind"];
  /** Opens the same medium as another process would. The suite closes the stores that it opens. */
  open(writer: string): Promise<Store>;
  /**
   * Replaces the medium by an empty one, like a lost disk or a restored backup; open stores continue with
   * that.
   */
  forget?(): Promise<void>;
  /** Removes the medium. */
  close(): Promise<void>;
}

/**
 * A case's tools: its own stores, which are closed after it, its own names, and helpers for requests and
 * checks.
 */
export class StoreStage {
  readonly ground: StoreGround;
  /** A medium may outlive a case: the registers of one must not affect another. */
  readonly prefix = `lease/conformance/${globalThis.crypto.randomUUID()}/`;
  readonly #stores: Store[] = [];

  constructor(ground: StoreGround) {
    this.ground = ground;
  }

  name(resource: string): string {
    return this.prefix + resource;
  }

  async open(writer = globalThis.crypto.randomUUID()): Promise<Store> {
    const store = await this.ground.open(writer);
    this.#stores.push(store);
    return store;
  }

  async openMany(count: number): Promise<Store[]> {
    return Promise.all(Array.from({ length: count }, () => this.open()));
  }

  /** Closing twice is allowed, so cases may close the stores that they opened. */
  async close(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
  }

  async id(store: Store): Promise<string> {
    return known(await store.perform({ op: "read", register: this.name("id") })).id;
  }

  async cells(store: Store, register: string): Promise<readonly Uint8Array[]> {
    const answer = known(await store.perform({ op: "read", register }));
    check(answer.kind === "cells", `a read was answered with ${answer.kind}`);
    return answer.cells;
  }

  /** The contents of a register as text, sorted. */
  async texts(store: Store, register: string): Promise<string[]> {
    return (await this.cells(store, register)).map(text).sort();
  }

  async replace(
    store: Store,
    register: string,
    expected: Uint8Array | undefined,
    next: Uint8Array,
  ): Promise<Known> {
    const id = await this.id(store);
    return known(await store.perform({ op: "replace", register, id, expected, next }));
  }

  async put(store: Store, register: string, content: string): Promise<void> {
    const answer = known(await store.perform({ op: "put", register, next: bytes(content) }));
    check(answer.kind === "written", `a put was answered with ${answer.kind}`);
  }

  /** Writes as the store's kind requires, over any content. */
  async write(store: Store, register: string, content: string): Promise<void> {
    if (store.traits.kind === "slotted") return this.put(store, register, content);
    const [cell] = await this.cells(store, register);
    const answer = await this.replace(store, register, cell, bytes(content));
    check(answer.kind === "written", `a replace of the content just read was answered with ${answer.kind}`);
  }

  async list(store: Store, prefix: string, registersMax = 1_000): Promise<ReadonlyMap<string, string>> {
    const answer = known(await store.perform({ op: "list", prefix, registersMax }));
    check(answer.kind === "registers", `a list was answered with ${answer.kind}`);
    return new Map([...answer.registers].map(([register, cells]) => [register, cells.map(text).join("|")]));
  }
}

export type Known = Exclude<StoreAnswer, { kind: "failed" }>;

/** The answer; throws if it is a failure. */
export function known(answer: StoreAnswer): Known {
  if (answer.kind === "failed") throw answer.error;
  return answer;
}

export function check(isTrue: boolean, otherwise: string): asserts isTrue {
  if (!isTrue) throw new Error(otherwise);
}

export function checkSame(actual: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  check(a === b, `${what}: expected ${b} and found ${a}`);
}

export function checkCell(cells: readonly Uint8Array[], expected: Uint8Array, what: string): void {
  const found = cells.map(text).join(" and ") || "nothing";
  check(
    cells.length === 1 && sameBytes(cells[0]!, expected),
    `${what}: expected ${text(expected)} and found ${found}`,
  );
}

/** Stores may rely on contents being one line of UTF-8 text, as records are. */
export function bytes(content: string): Uint8Array {
  return new TextEncoder().encode(content);
}

export function text(content: Uint8Array): string {
  return new TextDecoder().decode(content);
}
