import { getOrInsert } from "../../common/maps.js";
import { cellOf } from "./quorum.js";
import type { Cell } from "./quorum.js";

/**
 * Version of the function below. It is part of the configuration's hash: two that map differently refuse each
 * other.
 */
export const cellFunctionVersion = 1;

/** Cells without a setting: all members up to this many, else so many of them. */
export const cellSizeDefaultMax = 5;

/** Where to find the cell of a resource. */
export interface CellMap {
  of(resource: string): Cell;
}

/**
 * Which members coordinate which resource. With more members than a cell takes, the cell of a resource is
 * chosen by rendezvous hashing: every member gets a score from the resource's name and its own id, and the
 * highest ones are the cell. So all machines find the same cell, the resources spread evenly, and a member
 * that goes takes away only its own part.
 */
export class Cells implements CellMap {
  readonly #indices: readonly number[];
  readonly #cellSize: number;
  readonly #memberHashes: readonly number[];
  readonly #everybody: Cell;
  /** One object for each set of members that came up, by its bit mask. */
  readonly #known = new Map<number, Cell>();

  /** @param indices of these members among all that are known */
  constructor(
    members: readonly string[],
    cellSize: number,
    indices: readonly number[] = members.map((_, index) => index),
  ) {
    this.#indices = indices;
    this.#cellSize = cellSize;
    this.#memberHashes = members.map(hashText);
    this.#everybody = cellOf(indices);
  }

  of(resource: string): Cell {
    if (this.#cellSize >= this.#memberHashes.length) return this.#everybody;
    const mask = this.#choose(hashText(resource));
    const inMask = (_: number, position: number) => (mask >>> position) & 1;
    return getOrInsert(this.#known, mask, () => cellOf(this.#indices.filter(inMask)));
  }

  /** The members with the highest scores; equal scores are decided by the order of the ids. */
  #choose(resourceHash: number): number {
    let mask = 0;
    for (let chosen = 0; chosen < this.#cellSize; chosen += 1) {
      let best = -1;
      let bestScore = -1;
      for (let index = 0; index < this.#memberHashes.length; index += 1) {
        if ((mask >>> index) & 1) continue;
        const score = mix(resourceHash ^ this.#memberHashes[index]!);
        if (score > bestScore) {
          best = index;
          bestScore = score;
        }
      }
      mask |= 1 << best;
    }
    return mask;
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
