import { getOrInsert } from "../../common/maps.js";
import { cellOf } from "./quorum.js";
import type { Cell } from "./quorum.js";

/**
 * Version of the function below. It is part of the configuration's hash: members with different versions
 * refuse each other.
 */
export const cellFunctionVersion = 1;

/** The default cell: all members up to this many, else this many of them. */
export const cellSizeDefaultMax = 5;

/** Coordinates of a resource's cell. */
export interface CellMap {
  of(resource: string): Cell;
}

/** Maximum number of cached cells; with many members, nearly every resource has a cell of its own. */
const cellsKeptMax = 10_000;

/** Cells in a trie: keyed from member to member, in their order. */
class CellTree {
  readonly further = new Map<number, CellTree>();
  cell: Cell | undefined;
}

/**
 * Maps each resource to the members that coordinate it. If there are more members than a cell takes, the cell
 * of a resource is chosen by rendezvous hashing: each member gets a score from the resource's name and its
 * own id, and the highest scores form the cell. So all machines compute the same cell, resources spread
 * evenly, and removing a member moves only its own share.
 */
export class Cells implements CellMap {
  readonly #indices: readonly number[];
  readonly #memberHashes: readonly number[];
  readonly #everybody: Cell;
  /** The best so far, by descending score: their positions among the members, and their scores. */
  readonly #best: Int32Array;
  readonly #bestScores: Float64Array;
  /** Holds one object for each distinct set of members. */
  #known = new CellTree();
  #knownCount = 0;

  /** @param indices of these members among all known members */
  constructor(
    members: readonly string[],
    cellSize: number,
    indices: readonly number[] = members.map((_, index) => index),
  ) {
    this.#indices = indices;
    this.#memberHashes = members.map(hashText);
    this.#everybody = cellOf(indices);
    this.#best = new Int32Array(cellSize);
    this.#bestScores = new Float64Array(cellSize);
  }

  of(resource: string): Cell {
    if (this.#best.length >= this.#memberHashes.length) return this.#everybody;
    this.#choose(hashText(resource));
    let known = this.#known;
    for (const position of this.#best) known = getOrInsert(known.further, position, () => new CellTree());
    return (known.cell ??= this.#make());
  }

  #make(): Cell {
    this.#knownCount += 1;
    if (this.#knownCount > cellsKeptMax) {
      this.#known = new CellTree();
      this.#knownCount = 0;
    }
    return cellOf(Array.from(this.#best, (position) => this.#indices[position]!));
  }

  /** The members with the highest scores, in their own order. Ties go to the lower id. */
  #choose(resourceHash: number): void {
    const [best, scores] = [this.#best, this.#bestScores];
    const last = best.length - 1;
    scores.fill(-1);
    for (let position = 0; position < this.#memberHashes.length; position += 1) {
      const score = mix(resourceHash ^ this.#memberHashes[position]!);
      if (score <= scores[last]!) continue;
      let at = last;
      for (; at > 0 && score > scores[at - 1]!; at -= 1) {
        scores[at] = scores[at - 1]!;
        best[at] = best[at - 1]!;
      }
      scores[at] = score;
      best[at] = position;
    }
    best.sort();
  }
}

/** FNV-1a over UTF-16 code units, finished by `mix`: 32 bits, the same on every machine. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return mix(hash);
}

/** The finisher of MurmurHash3: each bit of the input changes half of the output's bits. */
function mix(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
