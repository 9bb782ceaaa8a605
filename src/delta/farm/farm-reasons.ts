import { LeaseholdError } from "../../lease/errors.js";
import type { StoreTraits } from "../store.js";

/** A store that may not count, and the last reason. */
interface Doubted {
  readonly traits: StoreTraits;
  readonly error: LeaseholdError;
}

/** Why a store of a farm does not count. While it is the same as `last` that is not made anew: an error costs more than a look. */
export function unavailable(why: string, last: LeaseholdError): LeaseholdError {
  return last.message === why ? last : new LeaseholdError("STORE_UNAVAILABLE", why);
}

export function waits({ traits, error }: Doubted): LeaseholdError {
  return unavailable(
    `${traits.name}: it answers, and has never been used; the first use needs all stores`,
    error,
  );
}

export function recovering({ traits, error }: Doubted): LeaseholdError {
  return unavailable(
    `${traits.name}: it has forgotten, or is new, and counts when every lease that it may not know of is over`,
    error,
  );
}

export function untold({ traits, error }: Doubted): LeaseholdError {
  return unavailable(
    `${traits.name}: it has forgotten, or is new, and not enough of the others know of it yet`,
    error,
  );
}

export function replaced({ traits, error }: Doubted): LeaseholdError {
  return unavailable(
    `${traits.name}: another store has taken its place, so this list of stores is out of date; to have this one back, empty it`,
    error,
  );
}

export const unconfirmed = new LeaseholdError(
  "STORE_UNAVAILABLE",
  "no majority has confirmed for a while that these are the stores of the farm",
);
