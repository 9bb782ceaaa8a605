import { expect, it } from "vitest";
import { failureText } from "../packages/sim/src/kit/simulator.js";
import { cored, searchCore } from "./planted/cored.js";

it.each(cored)("$name breaks $breaks", async (mistake) => {
  const { failed } = await searchCore(mistake);
  expect(failed && failureText(failed)).toMatch(`${mistake.breaks}: `);
});
