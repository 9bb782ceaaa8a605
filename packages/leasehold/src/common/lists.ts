/**
 * Functions for lists of any length. Calls such as `Math.max(...list)` put each item on the stack, which
 * overflows with a hundred thousand items.
 */

/** The greatest value, or `atLeast` if that is greater. */
export function greatest(values: Iterable<number>, atLeast = -Infinity): number {
  let found = atLeast;
  for (const value of values) found = Math.max(found, value);
  return found;
}

/** The least value; `Infinity` for an empty list. */
export function least(values: Iterable<number>): number {
  let found = Infinity;
  for (const value of values) found = Math.min(found, value);
  return found;
}

/** Appends all items to the list. */
export function append<T>(list: T[], more: Iterable<T>): void {
  for (const each of more) list.push(each);
}

/** Far below what overflows any stack. */
const fewMax = 1_000;

/**
 * Checks that the list is short enough to spread into the arguments of a call: `open(...few(endpoints))`.
 *
 * @throws RangeError if it is too long
 */
export function few<T>(list: readonly T[]): readonly T[] {
  if (list.length > fewMax)
    throw new RangeError(`a call takes at most ${fewMax} of these at once; ${list.length} were given`);
  return list;
}
