import { expect, test } from "vitest";
import { hostiles, searchHostile } from "../planted/hostile.js";

test("nobody is harmed by a hostile client's requests, and the server goes on and starts again", async () => {
  const { failed } = await searchHostile({}, (runs) => runs < 3);
  expect(failed).toBeUndefined();
});

test.each(hostiles)("$name, and that is found", async ({ faults }) => {
  const { failed } = await searchHostile(faults, (runs) => runs < 10);
  expect(failed?.found).toBeDefined();
  process.stdout.write(`seed ${failed!.seed}: ${failed!.found}\n`);
});
