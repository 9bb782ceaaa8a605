import { type ErrorCode, LeaseholdError } from "../lease/errors.js";

/** Permanent failures: a waiter must receive them. */
const lasting: ReadonlySet<ErrorCode> = new Set([
  "STORE_FULL",
  "STORE_READ_ONLY",
  "STORE_PERMISSION",
  "STORE_FOREIGN",
  "STORE_CORRUPT",
  "STORE_UNFIT",
  "WATCH_TOO_WIDE",
]);

/** A transient failure: the farm raises its bound on epochs at its next look. */
export const tooFewEpochs = new LeaseholdError(
  "NO_QUORUM",
  "a majority of the stores does not yet allow tokens this great; the bound is being raised now",
);

/**
 * Why no majority was reached. `errors` is by store index, with `undefined` for a store that did not answer.
 */
export function noMajority(
  size: number,
  majority: number,
  answered: number,
  errors: readonly (LeaseholdError | undefined)[],
): LeaseholdError {
  const permanent = errors.filter((error) => error !== undefined && lasting.has(error.code));
  const [first] = permanent;
  if (first !== undefined && size - permanent.length < majority) return first;
  const said = [...new Set(errors.filter((error) => error !== undefined).map(({ message }) => message))];
  const why = said.length === 0 ? "" : `: ${said.join("; ")}`;
  return new LeaseholdError(
    "NO_QUORUM",
    size === 1
      ? `the only store did not answer, or not in time${why}`
      : `no majority of the ${size} stores answered in time: ${answered} did, and ${majority} are needed${why}`,
    { cause: errors.find((error) => error !== undefined) },
  );
}
