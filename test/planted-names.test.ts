import { expect, it } from "vitest";
import { failureText } from "../packages/sim/src/kit/simulator.js";
import { named, searchNames } from "./planted/filed.js";

it.each(named)("$name breaks $breaks", async (mistake) => {
  const { failed } = await searchNames(mistake);
  expect(failed && failureText(failed)).toMatch(`${mistake.breaks}: `);
});
