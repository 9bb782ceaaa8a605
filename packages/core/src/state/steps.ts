/**
 * Long work, divided into bounded steps. The driver may do other work between steps, so that one request does
 * not block a server.
 */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Visits in one step: keys, versions, changes. Some tens of microseconds. */
export const unitsPerStep = 64;

/** Runs all steps at once. */
export function finish<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Counts visits, which measure the length of a turn. Code that visits a key, a version or a change counts it
 * here, in steps or not.
 */
export class Visits {
  count = 0;
}

/** Compares two items: at once, or in steps if there is much to compare. */
export type Comparison<Item> = (one: Item, other: Item) => number | Steps<number>;

/** Merge sort, stable, in steps; consumes the array. */
export function* sortInSteps<Item>(items: Item[], compare: (a: Item, b: Item) => number): Steps<Item[]> {
  for (let start = 0; start < items.length; start += unitsPerStep) {
    const run = items.slice(start, start + unitsPerStep).sort(compare);
    for (let index = 0; index < run.length; index += 1) items[start + index] = run[index]!;
    yield;
  }
  return yield* mergeRuns(items, unitsPerStep, compare);
}

/** The same for comparisons that may take more than one step. */
export function* sortByLongComparison<Item>(items: Item[], compare: Comparison<Item>): Steps<Item[]> {
  return yield* mergeRuns(items, 1, compare);
}

/** @param runLength length of the runs that are already sorted */
function* mergeRuns<Item>(items: Item[], runLength: number, compare: Comparison<Item>): Steps<Item[]> {
  const { length } = items;
  let from = items;
  let to = [...items];
  for (let width = runLength; width < length; width *= 2) {
    for (let start = 0; start < length; start += 2 * width)
      yield* merge(
        from,
        to,
        start,
        Math.min(start + width, length),
        Math.min(start + 2 * width, length),
        compare,
      );
    [from, to] = [to, from];
  }
  return from;
}

function* merge<Item>(
  from: readonly Item[],
  to: Item[],
  start: number,
  middle: number,
  end: number,
  compare: Comparison<Item>,
): Steps<void> {
  let [left, right] = [start, middle];
  for (let index = start; index < end; index += 1) {
    let order = left >= middle ? 1 : right >= end ? -1 : compare(from[left]!, from[right]!);
    if (typeof order !== "number") order = yield* order;
    to[index] = order <= 0 ? from[left++]! : from[right++]!;
    if (index % unitsPerStep === 0) yield;
  }
}
