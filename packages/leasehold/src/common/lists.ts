/**
 * Lists of any length, without `Math.max(...list)` and its like: each argument of a call takes room on the
 * stack, and a list of a hundred thousand is the end of it.
 */

/** The greatest of them, but no less than `atLeast`. */
export function greatest(values: Iterable<number>, atLeast = -Infinity): number {
  let found = atLeast;
  for (const value of values) found = Math.max(found, value);
  return found;
}

/** The least of them; `Infinity` of none. */
export function least(values: Iterable<number>): number {
  let found = Infinity;
  for (const value of values) found = Math.min(found, value);
  return found;
}

/** Puts all of them at the end of the list. */
export function append<T>(list: T[], more: Iterable<T>): void {
  for (const each of more) list.push(each);
}

/** Far from the end of any stack. */
const fewMax = 1_000;

/**
 * The list itself, to be the arguments of a call that takes them one by one: `open(...few(endpoints))`.
 *
 * @throws RangeError if they are too many
 */
export function few<T>(list: readonly T[]): readonly T[] {
  if (list.length > fewMax) throw new RangeError(`${list.length} are too many, at most ${fewMax}`);
  return list;
}
