import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import type { FileChange } from "@leasehold/files/inner/types.js";
import type { SimRandom } from "../../kit/random.js";
import type { FilesWorld, Machine } from "../world.js";
import type { NamesCounters } from "./plan.js";

/** The longest time for which a program follows at one node, ms. */
const stayMsMax = 2_500;
const pauseMsMax = 300;

/** Changes without a gap, in order. */
export type Followed = FileChange[];

/** A program that follows all changes, at one node after another. It remembers only its cursor. */
export class Follower {
  readonly #world: FilesWorld;
  readonly #counters: NamesCounters;
  readonly #random: SimRandom;
  /** A new part begins when changes after the cursor were no longer kept. */
  readonly parts: Followed[] = [[]];
  cursor: string | undefined;

  constructor(world: FilesWorld, counters: NamesCounters, random: SimRandom) {
    this.#world = world;
    this.#counters = counters;
    this.#random = random;
  }

  /** Begins to follow now. */
  async open({ named }: Machine): Promise<void> {
    try {
      for await (const { cursor } of named!.changes("")) {
        this.cursor ??= cursor;
        return;
      }
    } catch (error) {
      // The node is not running yet, or is dead: the program begins to follow later.
      this.#world.log(`a follower does not begin: ${String(error)}`);
    }
  }

  begin(): void {
    // This follower has missed changes.
    if (this.cursor === undefined && this.parts.length === 1) this.parts.push([]);
    if (this.#world.nowMs >= this.#world.plan.stableFromMs) return;
    const machine = this.#random.pick(this.#world.machines);
    const again = (): void =>
      this.#world.after(this.#random.next() * pauseMsMax, () => {
        this.begin();
      });
    if (!machine.isUp) again();
    else void this.#follow(machine, () => false, this.#random.next() * stayMsMax).then(again);
  }

  /** Follows until that place. */
  async end(machine: Machine, cursor: string): Promise<void> {
    const isThere = (): boolean => this.cursor !== undefined && numberOf(this.cursor) >= numberOf(cursor);
    while (!isThere()) await this.#follow(machine, isThere, stayMsMax);
  }

  async #follow(machine: Machine, isDone: () => boolean, stayMs: number): Promise<void> {
    const leaving = new AbortController();
    this.#world.after(stayMs, () => leaving.abort());
    const left = new Promise<void>((resolve) => leaving.signal.addEventListener("abort", () => resolve()));
    if (this.cursor !== undefined) this.#counters.resumed += 1;
    // Ignores batches from a node that the program has left: it no longer reads from there.
    await Promise.race([this.#take(machine, leaving.signal, isDone), left]);
    leaving.abort();
  }

  async #take(machine: Machine, signal: AbortSignal, isDone: () => boolean): Promise<void> {
    const { life, named } = machine;
    try {
      for await (const { changes, cursor } of named!.changes("", { after: this.cursor, signal })) {
        if (signal.aborted || machine.life !== life) return;
        this.#counters.followed += changes.length;
        for (const change of changes) this.parts.at(-1)!.push(change);
        this.cursor = cursor;
        this.#world.log(`a follower is at ${cursor}`);
        if (isDone()) return;
      }
    } catch (error) {
      if (signal.aborted || !(error instanceof LeaseholdError)) return;
      if (error.code === "CURSOR_GONE") this.#startAnew(error);
      await new Promise<void>((resolve) => this.#world.after(50, resolve));
    }
  }

  #startAnew(error: LeaseholdError): void {
    if (this.#world.plan.keptChanges >= 10_000)
      this.#world.report("changes", `at ${this.cursor}: ${error.message}`);
    this.#counters.gone += 1;
    this.cursor = undefined;
    this.parts.push([]);
  }
}

export const numberOf = (cursor: string): number => Number.parseInt(cursor.split("-")[1]!, 36);
