import { LeaseholdError } from "../../lease/errors.js";
import type { StoreTraits } from "../store.js";

/** Why a store of a farm does not count. */

export function waits({ name }: StoreTraits): LeaseholdError {
  const why = `${name}: it answers, and has never been used; the first use needs all stores`;
  return new LeaseholdError("STORE_UNAVAILABLE", why);
}

export function recovering({ name }: StoreTraits): LeaseholdError {
  const why = `${name}: it has forgotten, or is new, and counts when every lease that it may not know of is over`;
  return new LeaseholdError("STORE_UNAVAILABLE", why);
}

export function untold({ name }: StoreTraits): LeaseholdError {
  const why = `${name}: it has forgotten, or is new, and not enough of the others know of it yet`;
  return new LeaseholdError("STORE_UNAVAILABLE", why);
}

export function replaced({ name }: StoreTraits): LeaseholdError {
  const why = `${name}: another store has taken its place, so this list of stores is out of date; to have this one back, empty it`;
  return new LeaseholdError("STORE_UNAVAILABLE", why);
}

export const unconfirmed = new LeaseholdError(
  "STORE_UNAVAILABLE",
  "no majority has confirmed for a while that these are the stores of the farm",
);
