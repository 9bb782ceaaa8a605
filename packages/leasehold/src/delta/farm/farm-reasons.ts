import { LeaseholdError } from "../../lease/errors.js";
import type { StoreTraits } from "../store.js";

/** A store that does not count, and the last reason. */
interface UncountedStore {
  readonly traits: StoreTraits;
  readonly error: LeaseholdError;
}

/** Why a store of a farm does not count. An equal error is reused: creating one costs more than a look. */
export function unavailable(why: string, last: LeaseholdError): LeaseholdError {
  return last.message === why ? last : new LeaseholdError("STORE_UNAVAILABLE", why);
}

export function waits({ traits, error }: UncountedStore): LeaseholdError {
  return unavailable(`${traits.name}: it answers, but was never used; the first use needs all stores`, error);
}

export function recovering({ traits, error }: UncountedStore): LeaseholdError {
  return unavailable(
    `${traits.name}: it has forgotten, or is new, and counts when every lease that it may not know is over`,
    error,
  );
}

export function unlisted({ traits, error }: UncountedStore): LeaseholdError {
  return unavailable(
    `${traits.name}: it has forgotten, or is new, and too few of the others have it on their list yet`,
    error,
  );
}

export function replaced({ traits, error }: UncountedStore): LeaseholdError {
  return unavailable(
    `${traits.name}: another store has taken its place, so this list of stores is out of date; empty this store to use it again`,
    error,
  );
}

export const unconfirmed = new LeaseholdError(
  "STORE_UNAVAILABLE",
  "no majority has recently confirmed that these are the stores of the farm",
);
