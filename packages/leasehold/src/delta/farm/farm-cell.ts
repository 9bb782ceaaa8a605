import { LeaseholdError } from "../../lease/errors.js";
import { isCount } from "../../common/json.js";
import { greatest } from "../../common/lists.js";
import { DecodeCache } from "../record/decode-cache.js";
import { corrupt, encodeEnvelope, openEnvelope } from "../record/envelope.js";
import { bigintOf, greatestBigint, isDuration } from "../record/fields.js";

/** The first word of the content of a store's {@link farmRegister}. */
export const farmFormat = "leasehold-farm/2";

/** The stores of a farm. A list of a greater generation replaces one of a smaller generation. */
export interface FarmList {
  /** Increases when a store is replaced, and when a store that has forgotten rejoins. */
  readonly generation: number;
  /** The markers of all stores, sorted. */
  readonly farm: readonly string[];
}

/** A store's data about the farm that it belongs to. */
export interface FarmTerms extends FarmList {
  /** The longest lease that any user of the farm requests, ms. A store that has forgotten waits this long. */
  readonly leaseMsMax: number;
  /** The greatest δ that any user relies on, ms. */
  readonly delayMsMax: number;
  /** The epoch of cells that a store may have forgotten: no lease under an earlier list has a greater one. */
  readonly epochFloor: bigint;
  /**
   * No lease under this list has a greater epoch. A process raises the bound before it uses a greater one.
   */
  readonly epochMax: bigint;
}

/** A store's data about itself and its farm. */
export interface FarmCell extends FarmTerms {
  /** The store's own marker, so that a copy of a store is not taken for it. */
  readonly id: string;
  /** `recovering`: it may have forgotten leases that are still valid, and does not count. */
  readonly state: "ready" | "recovering";
  /** The generation in which the store joined. Writes of earlier generations may be forgotten. */
  readonly since: number;
  /**
   * During recovery: the least time since a list with this store was agreed on, ms by its users' steady
   * clocks.
   */
  readonly waitedMs: number;
}

export function encodeFarmCell(cell: FarmCell): Uint8Array {
  return encodeEnvelope(farmFormat, jsonOf(cell));
}

function jsonOf(cell: FarmCell): string {
  const { id, state, generation, farm, leaseMsMax, delayMsMax, since, waitedMs } = cell;
  const [epochFloor, epochMax] = [cell.epochFloor.toString(), cell.epochMax.toString()];
  const terms = { generation, farm, leaseMsMax, delayMsMax, epochFloor, epochMax };
  return JSON.stringify({ id, state, since, waitedMs, ...terms });
}

/** @throws LeaseholdError `STORE_FOREIGN`, `STORE_CORRUPT`. */
export function decodeFarmCell(bytes: Uint8Array): FarmCell {
  return known.decode(bytes);
}

const known = new DecodeCache(decodeAnew);

function decodeAnew(bytes: Uint8Array): FarmCell {
  const { json, value } = openEnvelope(farmFormat, bytes);
  const fields = (value ?? {}) as Record<keyof FarmCell, unknown>;
  const { id, state, generation, farm, leaseMsMax, delayMsMax, since, waitedMs } = fields;
  const [epochFloor, epochMax] = [bigintOf(fields.epochFloor), bigintOf(fields.epochMax)];
  const isSound =
    typeof id === "string" &&
    (state === "ready" || state === "recovering") &&
    isCount(generation) &&
    isCount(since) &&
    Array.isArray(farm) &&
    farm.every((item) => typeof item === "string") &&
    [leaseMsMax, delayMsMax, waitedMs].every(isDuration);
  if (isSound && epochFloor !== undefined && epochMax !== undefined) {
    const cell = { ...fields, epochFloor, epochMax } as FarmCell;
    if (jsonOf(cell) === json) return cell;
  }
  throw corrupt("it does not describe a farm", bytes);
}

export function sameList(a: FarmList, b: FarmList): boolean {
  return a.generation === b.generation && sameTexts(a.farm, b.farm);
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((text, index) => text === b[index]));
}

export function sameTerms(a: FarmTerms, b: FarmTerms): boolean {
  const isAsLong = a.leaseMsMax === b.leaseMsMax && a.delayMsMax === b.delayMsMax;
  return isAsLong && a.epochFloor === b.epochFloor && a.epochMax === b.epochMax && sameList(a, b);
}

export function sameCell(a: FarmCell, b: FarmCell): boolean {
  const isAsNew = a.since === b.since && a.waitedMs === b.waitedMs;
  return a.id === b.id && a.state === b.state && isAsNew && sameTerms(a, b);
}

/**
 * A total order of lists: later generations first. If a store came back twice, two processes that saw
 * different markers of it may each have written a list for the same generation. Either list will do, as long
 * as all processes choose the same.
 */
export function compareLists(a: FarmList, b: FarmList): number {
  if (a.generation !== b.generation) return b.generation - a.generation;
  const [one, other] = [a.farm.join(), b.farm.join()];
  return one < other ? 1 : one > other ? -1 : 0;
}

/**
 * The terms of `list`, merged from all cells that were read. Bounds only grow. The epochs of leases under
 * other lists are below the floor: a majority agreed on the list, and a majority on the greatest epoch of any
 * lease, so the two majorities have a store in common.
 */
export function termsOf({ generation, farm }: FarmList, cells: readonly FarmTerms[]): FarmTerms {
  const epochs = cells.map((cell) =>
    sameList(cell, { generation, farm }) ? cell.epochFloor : cell.epochMax,
  );
  return {
    generation,
    farm,
    leaseMsMax: greatest([0, ...cells.map((cell) => cell.leaseMsMax)]),
    delayMsMax: greatest([0, ...cells.map((cell) => cell.delayMsMax)]),
    epochFloor: greatestBigint(epochs),
    epochMax: greatestBigint(cells.map((cell) => cell.epochMax)),
  };
}

/**
 * Merges the cells of a slotted store's writers: a state that any of them reached has been reached, and
 * bounds only grow.
 *
 * @throws LeaseholdError `CONFIG_MISMATCH` when two of them have founded it with different stores, or rely on
 *   different δ.
 */
export function mergeFarmCells(cells: readonly FarmCell[]): FarmCell | undefined {
  const [latest] = cells.toSorted((a, b) => compareLists(a, b) || rank(b) - rank(a));
  if (latest === undefined) return undefined;
  const { generation, delayMsMax } = latest;
  if (generation === 0 && cells.some((cell) => !sameList(cell, latest)))
    throw new LeaseholdError(
      "CONFIG_MISMATCH",
      "a store is in two farms: it was used with two lists of stores",
    );
  if (cells.some((cell) => cell.delayMsMax !== delayMsMax))
    throw new LeaseholdError("CONFIG_MISMATCH", "a store that can only write was used with different δ");
  const waited = cells.filter((cell) => sameList(cell, latest)).map((cell) => cell.waitedMs);
  const waitedMs = latest.state === "ready" ? 0 : greatest(waited);
  return { ...latest, ...termsOf(latest, cells), waitedMs };
}

function rank({ state }: FarmCell): number {
  return state === "ready" ? 1 : 0;
}
