import { expect, it } from "vitest";
import { coreFailureText } from "../sim/core/run.js";
import { cored, searchCore } from "./planted/cored.js";

it.each(cored)("$name breaks $breaks", (mistake) => {
  const { failed } = searchCore(mistake);
  expect(failed && coreFailureText(failed)).toMatch(`${mistake.breaks}: `);
});
