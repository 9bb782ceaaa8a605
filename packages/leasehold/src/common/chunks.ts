import type { Timers } from "./ports.js";

/**
 * Processes long lists in chunks, each of which takes one turn of the event loop and a few milliseconds: a
 * program that asks for a million items may also hold leases that have to be renewed meanwhile. A short list
 * takes one turn.
 */

/** Items per turn. */
const perTurn = 10_000;

/** Like `Array.map`. */
export async function mapInChunks<From, To>(
  items: Iterable<From>,
  map: (item: From) => To,
  timers: Timers,
): Promise<To[]> {
  const mapped: To[] = [];
  for (const item of items) {
    mapped.push(map(item));
    if (mapped.length % perTurn === 0) await nextTurn(timers);
  }
  return mapped;
}

/** A stable merge sort. */
export async function sortInChunks<T>(
  items: readonly T[],
  compare: (one: T, other: T) => number,
  timers: Timers,
): Promise<T[]> {
  let runs: T[][] = [];
  for (let start = 0; start < items.length; start += perTurn) {
    if (start > 0) await nextTurn(timers);
    runs.push(items.slice(start, start + perTurn).sort(compare));
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let at = 0; at < runs.length; at += 2)
      merged.push(await mergeInChunks(runs[at]!, runs[at + 1] ?? [], compare, timers));
    runs = merged;
  }
  return runs[0] ?? [];
}

async function mergeInChunks<T>(
  left: readonly T[],
  right: readonly T[],
  compare: (one: T, other: T) => number,
  timers: Timers,
): Promise<T[]> {
  const merged: T[] = [];
  let [nextLeft, nextRight] = [0, 0];
  while (merged.length < left.length + right.length) {
    const isLeft =
      nextRight === right.length ||
      (nextLeft < left.length && compare(left[nextLeft]!, right[nextRight]!) <= 0);
    merged.push(isLeft ? left[nextLeft++]! : right[nextRight++]!);
    if (merged.length % perTurn === 0) await nextTurn(timers);
  }
  return merged;
}

function nextTurn(timers: Timers): Promise<void> {
  return new Promise((resolve) => {
    timers.after(0, resolve);
  });
}
