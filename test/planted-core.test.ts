import { expect, it } from "vitest";
import { failureText } from "../packages/sim/src/kit/simulator.js";
import { cored, searchCore, withoutMistake } from "./planted/cored.js";

it.each(cored)("$name breaks $breaks, which holds without the mistake", async (mistake) => {
  const { failed } = await searchCore(mistake);
  expect(failed && failureText(failed)).toMatch(`${mistake.breaks}: `);
  // A mistake in the plan itself cannot be left out.
  if (Object.keys({ ...mistake.faults, ...mistake.raftFaults, ...mistake.waistFaults }).length === 0) return;
  const honest = await withoutMistake(mistake, failed!.plan.seed);
  expect(honest.failed && failureText(honest.failed)).toBeUndefined();
});
