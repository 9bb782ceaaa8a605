import { expect, it } from "vitest";
import { storageFailureText } from "../sim/delta/run.js";
import { searchStored, stored } from "./planted/stored.js";

it.each(stored)("$name breaks $breaks", (mistake) => {
  const { failed } = searchStored(mistake);
  expect(failed && storageFailureText(failed)).toMatch(`${mistake.breaks}: `);
});
