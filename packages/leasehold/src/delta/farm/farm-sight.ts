import { formatDuration } from "../../lease/duration.js";
import { LeaseholdError } from "../../lease/errors.js";
import {
  decodeFarmCell,
  type FarmCell,
  type FarmTerms,
  mergeFarmCells,
  sameCell,
  sameTerms,
} from "./farm-cell.js";
import type { FarmAnswer } from "./farm-plan.js";
import { unavailable } from "./farm-reasons.js";
import type { StoreAnswer, StoreRequest, StoreTraits } from "../store.js";

/** One store's answer in a look at a farm. */
export type Sight = FarmAnswer & { readonly content?: Uint8Array | undefined };

/** The store's cell under its present marker. */
export function ownCell(sight: Sight): FarmCell | undefined {
  return sight.kind === "answered" && sight.cell?.id === sight.id ? sight.cell : undefined;
}

/** Whether the store's cell contains all of the terms. */
export function knows(sight: Sight, terms: FarmTerms): boolean {
  const cell = ownCell(sight);
  return cell !== undefined && sameTerms(cell, terms);
}

/**
 * The greatest bound on epochs that a majority has reached. The majority must agree on all other terms;
 * `undefined` when none does.
 */
export function agreedEpochMax(
  sights: readonly Sight[],
  terms: FarmTerms,
  majority: number,
): bigint | undefined {
  const bounds = sights
    .map(ownCell)
    .filter((cell) => cell !== undefined)
    .filter((cell) => sameTerms({ ...cell, epochMax: terms.epochMax }, terms))
    .map(({ epochMax }) => epochMax);
  return bounds.toSorted((a, b) => (a < b ? 1 : a > b ? -1 : 0))[majority - 1];
}

/** Only the store's waiting time was written, which is no reason to look again. */
export function isMereWait(sight: Sight, request: StoreRequest | undefined): boolean {
  const cell = ownCell(sight);
  if (cell === undefined || (request?.op !== "replace" && request?.op !== "put")) return false;
  const next = decodeFarmCell(request.next);
  return sameCell({ ...cell, waitedMs: next.waitedMs }, next);
}

/** A sight, and the mark with which the store can report whether anything was announced since. */
export interface Seen {
  readonly mark: string;
  readonly sight: Sight & { readonly kind: "answered" };
}

/**
 * @param last the store's previous error
 * @param seen the present content if the store answers `quiet`
 */
export function sightOf(
  answer: StoreAnswer | undefined,
  traits: StoreTraits,
  last: LeaseholdError,
  seen: Seen["sight"] | undefined,
): Sight {
  if (answer?.kind === "quiet" && answer.id === seen?.id) return seen;
  if (answer?.kind === "failed") return { kind: "silent", error: answer.error };
  if (answer?.kind !== "cells") {
    const silence = `${traits.name}: it did not answer within ${formatDuration(traits.delayMs)}`;
    return { kind: "silent", error: unavailable(silence, last) };
  }
  try {
    const { id, cells } = answer;
    const content = traits.kind === "atomic" ? cells[0] : undefined;
    return { kind: "answered", id, cell: mergeFarmCells(cells.map(decodeFarmCell)), content };
  } catch (error) {
    if (error instanceof LeaseholdError) return { kind: "silent", error };
    throw error;
  }
}
