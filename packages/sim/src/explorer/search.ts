import type { Bounds } from "./bounds.js";
import type { Model } from "./model.js";
import { Rows, Visited } from "./visited.js";
import { SmallWorld } from "./world.js";
import type { Wrong } from "./world.js";

/** A violation, with the shortest way to it. */
export interface Finding extends Wrong {
  /** One step a line, from the beginning. */
  readonly steps: readonly string[];
}

export interface Exploration {
  /** The number of different states, ignoring acceptors' names. */
  readonly states: number;
  /** Steps between them. */
  readonly transitions: number;
  /** The length of the longest of all shortest paths to a state. */
  readonly depth: number;
  /** Different states of one acceptor, and of one proposer. */
  readonly acceptorStates: number;
  readonly proposerStates: number;
  /** All states within the bounds have been seen. False also when a violation ended the search. */
  readonly complete: boolean;
  readonly finding: Finding | undefined;
}

export interface Progress {
  readonly states: number;
  readonly depth: number;
  /** States whose successors are still to be looked at. */
  readonly waiting: number;
}

export interface SearchOptions {
  readonly bounds: Bounds;
  /** The limit of states. */
  readonly statesMax?: number;
  /** Called periodically; the search ends when it returns false. */
  readonly onProgress?: (progress: Progress) => boolean;
}

/** States between two calls of `onProgress`. */
const progressEvery = 1 << 16;

const noParent = -1;

/** Visits all states of a small world, in the order of their distance from the start. */
export function explore<Acceptor, Proposer, Request, Reply>(
  model: Model<Acceptor, Proposer, Request, Reply>,
  options: SearchOptions,
): Exploration {
  const world = new SmallWorld(model, options.bounds);
  return new Search(world, options).run();
}

class Search<Acceptor, Proposer, Request, Reply> {
  readonly #world: SmallWorld<Acceptor, Proposer, Request, Reply>;
  readonly #statesMax: number;
  readonly #onProgress: (progress: Progress) => boolean;
  readonly #visited = new Visited();
  readonly #print = new Int32Array(2);
  #level: Rows;
  #nextLevel: Rows;
  #depth = 0;
  #parent = noParent;
  #wrong: { readonly index: number; readonly wrong: Wrong } | undefined;

  constructor(world: SmallWorld<Acceptor, Proposer, Request, Reply>, options: SearchOptions) {
    this.#world = world;
    this.#statesMax = options.statesMax ?? Infinity;
    this.#onProgress = options.onProgress ?? (() => true);
    this.#level = new Rows(world.width);
    this.#nextLevel = new Rows(world.width);
  }

  run(): Exploration {
    const row = new Int32Array(this.#world.width);
    this.#visit(this.#world.initial(), undefined);
    let first = 0;
    let goOn = true;
    while (goOn && this.#wrong === undefined && this.#nextLevel.size > 0) {
      this.#level = this.#nextLevel;
      this.#nextLevel = new Rows(this.#world.width);
      for (let at = 0; at < this.#level.size && goOn && this.#wrong === undefined; at += 1) {
        this.#level.read(at, row);
        this.#parent = first + at;
        this.#world.follow(row, this.#visit);
        if ((this.#parent + 1) % progressEvery === 0) goOn = this.#onProgress(this.#progress(at));
        if (this.#visited.size >= this.#statesMax) goOn = false;
      }
      first += this.#level.size;
      if (this.#nextLevel.size > 0) this.#depth += 1;
    }
    const { steps, transitions } = this.#world;
    return {
      states: this.#visited.size,
      transitions,
      depth: this.#depth,
      acceptorStates: steps.acceptors.size,
      proposerStates: steps.proposers.size,
      complete: goOn && this.#wrong === undefined,
      finding: this.#wrong && { ...this.#wrong.wrong, steps: this.#wayTo(this.#wrong.index) },
    };
  }

  #progress(at: number): Progress {
    const waiting = this.#level.size - at + this.#nextLevel.size;
    return { states: this.#visited.size, depth: this.#depth, waiting };
  }

  readonly #visit = (row: Int32Array, wrong: Wrong | undefined): void => {
    fingerprint(row, this.#print);
    const index = this.#visited.add(this.#print[0]!, this.#print[1]!, this.#parent);
    if (index === -1) {
      // A step can be wrong even though the state after it is not. Then the path ends just before the step.
      if (wrong !== undefined) this.#wrong ??= { index: this.#parent, wrong };
      return;
    }
    this.#nextLevel.push(row);
    const found = wrong ?? this.#world.check(row);
    if (found !== undefined) this.#wrong ??= { index, wrong: found };
  };

  /** Repeats the path state by state, this time with descriptions of the steps. */
  #wayTo(index: number): string[] {
    const way: number[] = [];
    for (let at = index; at !== noParent; at = this.#visited.parentOf(at)) way.unshift(at);
    const steps: string[] = [];
    let row = this.#world.initial();
    // The standard form of a state may rename acceptors, but a reader needs one name for each.
    let names: readonly number[] = [0, 1, 2];
    for (const target of way.slice(1)) {
      let arrived: Int32Array | undefined;
      this.#world.describe(row, (next, step, order) => {
        if (arrived !== undefined) return;
        fingerprint(next, this.#print);
        if (this.#print[0] !== this.#visited.lowOf(target) || this.#print[1] !== this.#visited.highOf(target))
          return;
        arrived = next.slice();
        const before = names;
        steps.push(step.replaceAll(/\ba([0-2])\b/g, (_name, digit: string) => `a${before[Number(digit)]!}`));
        const after = [...before];
        for (const [from, to] of order.entries()) after[to] = before[from]!;
        names = after;
      });
      if (arrived === undefined)
        throw new Error("assertion failed: the way to a state cannot be walked again");
      row = arrived;
    }
    return steps;
  }
}

/** Two independent hashes of 32 bits (MurmurHash3's mixing). */
function fingerprint(row: Int32Array, into: Int32Array): void {
  let low = 0x2545f491;
  let high = 0x6a09e667;
  for (const word of row) {
    low = mix(low, word, 0xcc9e2d51, 0x1b873593);
    high = mix(high, word, 0x85ebca6b, 0xc2b2ae35);
  }
  into[0] = finish(low);
  into[1] = finish(high);
}

function mix(hash: number, word: number, one: number, two: number): number {
  let mixed = Math.imul(word, one);
  mixed = Math.imul((mixed << 15) | (mixed >>> 17), two);
  const turned = hash ^ mixed;
  return (Math.imul((turned << 13) | (turned >>> 19), 5) + 0xe6546b64) | 0;
}

function finish(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) | 0;
}
