import { expect, it } from "vitest";
import { explored } from "./planted/explored.js";
import { find } from "./planted/find.js";

/** Mistakes that take longer: only `npm run planted -- sim` looks for them. */
const slow = /^(?:P2|P3|P4|P6|P9|P16|P22|P32):/;

it.each(explored.filter(({ name }) => !slow.test(name)))("$name breaks $breaks", (mistake) => {
  const { finding } = find(mistake);
  expect(finding?.invariant).toBe(mistake.breaks);
  expect(finding?.steps.length).toBeGreaterThan(3);
});

/** Worlds small enough to be explored completely, in which only the mistake is wrong. */
const whole = /^(?:P5|P10|P20|P33|breaking)/;

it.each(explored.filter(({ name }) => whole.test(name)))(
  "without the mistake of $name its world is sound",
  (mistake) => {
    expect(find(mistake, false)).toMatchObject({ complete: true, finding: undefined });
  },
);
