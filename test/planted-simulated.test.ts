import { expect, it } from "vitest";
import { failureText } from "../packages/sim/src/kit/simulator.js";
import { invariants } from "../packages/sim/src/flease/stage/invariants.js";
import { search } from "./planted/find.js";
import { simulated } from "./planted/simulated.js";

it.each(simulated)("$name breaks $breaks in mode $mode", async (mistake) => {
  const { failed } = await search(mistake);
  expect(failed && failureText(failed)).toMatch(`${mistake.breaks}: `);
});

it("every invariant is broken by a planted mistake", () => {
  const broken = new Set<string>(simulated.map(({ breaks }) => breaks));
  // L2 is checked only in fair weather, where it has a test of its own.
  expect(invariants.filter((name) => !broken.has(name))).toEqual(["L2"]);
});
