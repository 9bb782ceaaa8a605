import { expect, it } from "vitest";
import { failureText } from "../src/sim/run.js";
import { search } from "./planted/find.js";
import { simulated } from "./planted/simulated.js";

it.each(simulated)("$name breaks $breaks in mode $mode", async (mistake) => {
  const { failed } = await search(mistake);
  expect(failed && failureText(failed)).toMatch(`${mistake.breaks}: `);
});
