import { expect, it } from "vitest";
import { failureText } from "../packages/sim/src/kit/simulator.js";
import { searchStored, stored } from "./planted/stored.js";

it.each(stored)("$name breaks $breaks", async (mistake) => {
  const { failed } = await searchStored(mistake);
  expect(failed && failureText(failed)).toMatch(`${mistake.breaks}: `);
});
