import { getOrInsert } from "../../common/maps.js";
import { Cells } from "../protocol/cells.js";
import type { CellMap } from "../protocol/cells.js";
import { jointCellOf } from "../protocol/quorum.js";
import type { Cell } from "../protocol/quorum.js";
import type { View } from "./view.js";

/** The cell map of a joint view: each resource's old cell joined with its new one. */
class JointCells implements CellMap {
  readonly #before: Cells;
  readonly #after: Cells;
  /** One object for each pair of cells, for as long as the cells exist. */
  readonly #known = new WeakMap<Cell, WeakMap<Cell, Cell>>();

  constructor(before: Cells, after: Cells) {
    this.#before = before;
    this.#after = after;
  }

  of(resource: string): Cell {
    const before = this.#before.of(resource);
    const after = this.#after.of(resource);
    const known = getOrInsert(this.#known, before, () => new WeakMap<Cell, Cell>());
    return getOrInsert(known, after, () => jointCellOf(before, after));
  }
}

/** The cells of a view, whose members are identified by their index in `ids`. */
export function cellsOf({ members, cellSize, before }: View, ids: readonly string[]): CellMap {
  const after = new Cells(members, cellSize, indicesIn(ids, members));
  if (before === undefined) return after;
  return new JointCells(new Cells(before.members, before.cellSize, indicesIn(ids, before.members)), after);
}

function indicesIn(ids: readonly string[], members: readonly string[]): number[] {
  const index = new Map(ids.map((id, at) => [id, at]));
  return members.map((id) => index.get(id)!);
}
