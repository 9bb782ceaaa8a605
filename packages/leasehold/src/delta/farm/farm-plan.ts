import { LeaseholdError } from "../../lease/errors.js";
import { compareLists, type FarmCell, type FarmTerms, sameList, termsOf } from "./farm-cell.js";

/** A store's answer to a read of its farm's register. */
export type FarmAnswer =
  | { readonly kind: "silent"; readonly error: LeaseholdError }
  | { readonly kind: "answered"; readonly id: string; readonly cell: FarmCell | undefined };

/** The farm that the answers of all stores describe. */
export type FarmPlan =
  /** These stores were never used before, and not all of them answer: no farm can be founded yet. */
  { readonly kind: "unfounded" } | Founded;

/** The terms, which a majority must have before anything else counts. */
export interface Founded extends FarmTerms {
  readonly kind: "farm";
  /** Stores that belong to it, by index. */
  readonly members: readonly number[];
  /** Stores that replace others which have forgotten or were removed. */
  readonly newcomers: readonly number[];
  /** Stores that belonged to it until a newcomer took their place: this list of stores is outdated. */
  readonly replaced: readonly number[];
}

/**
 * Determines the farm of these stores. Pure, and deterministic for the same answers.
 *
 * @throws LeaseholdError `CONFIG_MISMATCH` when they cannot be the stores of one farm.
 */
export function planFarm(names: readonly string[], answers: readonly FarmAnswer[]): FarmPlan {
  const answered = answers.flatMap((answer, store) =>
    answer.kind === "answered" ? [{ ...answer, store }] : [],
  );
  const twin = answered.find(({ id }, index) => answered.findIndex((other) => other.id === id) !== index);
  if (twin !== undefined)
    throw mismatch(`${names[twin.store]} is in the list of stores twice, or is a copy of another of them`);
  // A cell that names another marker is part of a copy of that store.
  const known = answered.flatMap(({ id, cell }) => (cell !== undefined && cell.id === id ? [cell] : []));
  const everybody = answered.map(({ store }) => store);
  const latest = latestOf(known, answers.length);
  if (latest === undefined) {
    if (answered.length < answers.length) return { kind: "unfounded" };
    const terms = termsOf({ generation: 0, farm: answered.map(({ id }) => id).toSorted() }, []);
    return { kind: "farm", ...terms, members: everybody, newcomers: [], replaced: [] };
  }
  const { generation, farm } = latest;
  if (farm.length !== answers.length)
    throw mismatch(`their farm has ${farm.length} stores, and ${answers.length} were given`);
  const isApart = (cell: FarmCell) =>
    (generation === 0 && !sameList(cell, latest)) || !cell.farm.some((id) => farm.includes(id));
  if (known.some(isApart)) throw mismatch("they belong to different farms");
  const members = answered.filter(({ id }) => farm.includes(id)).map(({ store }) => store);
  const strangers = answered.filter(({ store }) => !members.includes(store));
  if (strangers.length >= answers.length / 2)
    throw mismatch(
      `${strangers.map(({ store }) => names[store]).join(" and ")} do not belong to the farm of the others, or half of the stores have forgotten it`,
    );
  // A store on another list of the same generation has lost to this one, and joins as a newcomer.
  const wasMember = ({ id, cell }: (typeof answered)[number]) =>
    cell?.id === id && cell.generation < generation;
  const replaced = strangers.filter(wasMember).map(({ store }) => store);
  const newcomers = strangers.filter((stranger) => !wasMember(stranger)).map(({ store }) => store);
  return { kind: "farm", ...termsOf(latest, known), members, newcomers, replaced };
}

/**
 * The last list. If there are several for the last generation: the one that a majority has, or else the first
 * in order.
 */
function latestOf(known: readonly FarmCell[], size: number): FarmCell | undefined {
  const inOrder = known.toSorted(compareLists);
  const last = inOrder.filter(({ generation }) => generation === inOrder[0]!.generation);
  const agreed = last.find((cell) => 2 * last.filter((other) => sameList(other, cell)).length > size);
  return agreed ?? last[0];
}

function mismatch(why: string): LeaseholdError {
  return new LeaseholdError("CONFIG_MISMATCH", `these stores are not one farm: ${why}`);
}
