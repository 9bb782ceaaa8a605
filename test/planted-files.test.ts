import { expect, it } from "vitest";
import { failureText } from "../packages/sim/src/kit/simulator.js";
import { filed, searchFiles } from "./planted/filed.js";

it.each(filed)("$name breaks $breaks", async (mistake) => {
  const { failed } = await searchFiles(mistake);
  expect(failed && failureText(failed)).toMatch(`${mistake.breaks}: `);
});
