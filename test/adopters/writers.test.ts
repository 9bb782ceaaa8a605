import { expect, test } from "vitest";
import { Writers } from "./support/writers.js";

/** Tests the check for two primaries, since healthy clusters never exercise it. */
const row = (id: string, node: string, timeline: number, beganMs: number) => ({
  id,
  node,
  timeline,
  beganMs,
  endedMs: beganMs + 5,
});

test.each([
  ["one primary after another", [row("a", "n1", 1, 0), row("b", "n2", 2, 10), row("c", "n1", 3, 20)], []],
  ["a row that was in flight at the change", [row("a", "n1", 1, 12), row("b", "n2", 2, 10)], []],
  ["a row of the old primary after the change", [row("a", "n1", 1, 20), row("b", "n2", 2, 10)], ["a"]],
  ["two nodes in one timeline", [row("a", "n1", 2, 0), row("b", "n2", 2, 10)], ["a", "b"]],
])("%s: the writers report exactly the rows that violate exclusion", (_, rows, wrong) => {
  const writers = new Writers([]);
  writers.rows.push(...rows);
  expect(writers.doubleWrites().map(({ id }) => id)).toEqual(wrong);
});
