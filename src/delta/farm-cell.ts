import { LeaseholdError } from "../lease/errors.js";
import { corrupt, decodeLine, encodeLine, sameBytes } from "./line.js";
import { greatest } from "../lease/lists.js";

/** The first word of what stands in a store's {@link farmRegister}. */
export const farmFormat = "leasehold-farm/1";

/** What each store says of itself and of the farm that it belongs to. */
export interface FarmCell {
  /** The store's own marker, so that a copy of a store is not taken for it. */
  readonly id: string;
  /** `recovering`: it may have forgotten leases that still run, and does not count. */
  readonly state: "ready" | "recovering";
  /** One more each time that another store, or one that has forgotten, took a member's place. */
  readonly generation: number;
  /** The markers of all stores, sorted. */
  readonly farm: readonly string[];
  /** The longest lease that any user of the farm asks for, ms: so long must be waited when a store has forgotten. */
  readonly leaseMsMax: number;
  /** The greatest δ that any user relies on, ms. */
  readonly delayMsMax: number;
}

export function encodeFarmCell(cell: FarmCell): Uint8Array {
  const { id, state, generation, farm, leaseMsMax, delayMsMax } = cell;
  return encodeLine(farmFormat, JSON.stringify({ id, state, generation, farm, leaseMsMax, delayMsMax }));
}

/** @throws LeaseholdError `STORE_FOREIGN`, `STORE_CORRUPT`. */
export function decodeFarmCell(bytes: Uint8Array): FarmCell {
  const value = decodeLine(farmFormat, bytes);
  const { id, state, generation, farm, leaseMsMax, delayMsMax } = (value ?? {}) as Record<
    keyof FarmCell,
    unknown
  >;
  const isSound =
    typeof id === "string" &&
    (state === "ready" || state === "recovering") &&
    isNumber(generation) &&
    Number.isInteger(generation) &&
    Array.isArray(farm) &&
    farm.every((item) => typeof item === "string") &&
    isNumber(leaseMsMax) &&
    isNumber(delayMsMax);
  if (isSound) {
    const cell: FarmCell = { id, state, generation, farm, leaseMsMax, delayMsMax };
    if (sameBytes(encodeFarmCell(cell), bytes)) return cell;
  }
  throw corrupt("it does not describe a farm", bytes);
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER / 4;
}

/**
 * One of the cells that several writers of a slotted store have written: what was reached by any of them has been reached, and
 * the longest lease only ever grows.
 *
 * @throws LeaseholdError `CONFIG_MISMATCH` when two of them have put different stores into the same generation, or rely on different δ.
 */
export function mergeFarmCells(cells: readonly FarmCell[]): FarmCell | undefined {
  const [latest] = cells.toSorted((a, b) => b.generation - a.generation || rank(b) - rank(a));
  if (latest === undefined) return undefined;
  const { generation, farm, delayMsMax } = latest;
  if (cells.some((cell) => cell.generation === generation && cell.farm.join() !== farm.join()))
    throw new LeaseholdError(
      "CONFIG_MISMATCH",
      "a store is in two farms: it was used with two lists of stores",
    );
  if (cells.some((cell) => cell.delayMsMax !== delayMsMax))
    throw new LeaseholdError("CONFIG_MISMATCH", "a store that can only write was used with different δ");
  return { ...latest, leaseMsMax: greatest(cells.map(({ leaseMsMax }) => leaseMsMax)) };
}

function rank({ state }: FarmCell): number {
  return state === "ready" ? 1 : 0;
}
